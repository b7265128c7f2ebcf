package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// TestConvert: from the place of each other tool on, every row comes, that of the transaction in whose middle it stopped too, and none
// before it.
func TestConvert(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *testenv.Server) {
		s := newSetup(t, server)
		s.write(t)
		s.insert(t, 1)
		file, offset := server.BinlogPosition(t)
		gtids := strings.ReplaceAll(server.GTIDExecuted(t), "\n", "")
		s.insert(t, 2)
		s.insert(t, 3)
		maxwell := server.Database(t)
		server.Exec(t, "GRANT SELECT ON `"+maxwell+"`.* TO '"+s.user+"'@'%'",
			"CREATE TABLE `"+maxwell+"`.positions (server_id INT UNSIGNED, binlog_file VARCHAR(255), binlog_position INT UNSIGNED, gtid_set VARCHAR(4096), client_id VARCHAR(255), heartbeat_at BIGINT)",
			fmt.Sprintf("INSERT INTO `%s`.positions VALUES (@@server_id, '%s', %d, NULL, 'maxwell', 1)", maxwell, file, offset))
		write := func(name, text string) {
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
		}
		write("offsets.dat", fmt.Sprintf("\xac\xed\x00\x05"+`["shop",{"server":"shop"}]`+"\x00"+`{"file":"%s","pos":%d,"gtids":"%s","row":1,"event":2}`, file, offset, gtids))
		write("plain.dat", fmt.Sprintf(`["shop",{"server":"shop"}]{"file":"%s","pos":%d}`, file, offset))
		write("meta.dat", fmt.Sprintf(`{"clientDatas":[{"clientIdentity":{"clientId":1001,"destination":"example"},"cursor":{"postion":{"journalName":"%s","position":%d}}}]}`, file, offset+70)) //nolint:misspell // as Canal spells it
		for _, from := range [][]string{{"debezium", "offsets.dat"}, {"debezium", "plain.dat"}, {"canal", "meta.dat"}, {"maxwell", maxwell}} {
			args := append([]string{"checkpoint", "convert", "--from"}, from...)
			require.Contains(t, s.command(t, args...), "nothing was written")
			require.NoFileExists(t, filepath.Join(s.dir, "shop.checkpoint"))
			s.command(t, append(args, "--yes")...)
			code, _, stderr := binlogd(t, s.dir, append(args, "--yes")...)
			require.Equal(t, exitConfig, code)
			require.Contains(t, stderr, "there is a checkpoint already")
			s.runUntil(t, 2)
			require.Equal(t, "2", s.lines(t)[0].Subject, from)
			require.Equal(t, "3", s.lines(t)[1].Subject, from)
			for _, left := range []string{"events.jsonl", "shop.checkpoint", "shop.checkpoint.history", "shop.checkpoint.schema"} {
				require.NoError(t, os.RemoveAll(filepath.Join(s.dir, left)))
			}
		}
	})
}
