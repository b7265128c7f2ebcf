package canal

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

func TestTables(t *testing.T) {
	t.Parallel()
	for _, server := range []*testenv.Server{testenv.MySQL(t), testenv.MariaDB(t)} {
		database := server.Database(t)
		server.Exec(t, "USE `"+database+"`; CREATE TABLE a (x INT, y INT, `p``q` INT, PRIMARY KEY (`p``q`, x)); CREATE TABLE b (n INT NOT NULL, UNIQUE (n)); "+
			"CREATE TABLE c (id INT PRIMARY KEY, y INT, z INT, INDEX (y), "+
			"CONSTRAINT `f``1` FOREIGN KEY (z, y) REFERENCES a (`p``q`, x) ON DELETE SET NULL ON UPDATE CASCADE, FOREIGN KEY of_b (y) REFERENCES b (n)); "+
			"CREATE VIEW v AS SELECT 1")
		o := ConnectOptions{Address: server.Addr}
		o.User, o.Password = server.User(t, "SELECT ON `"+database+"`.*")
		i, err := Inspect(t.Context(), o)
		require.NoError(t, err)
		tables, err := i.Tables(t.Context())
		require.NoError(t, err)
		tables = slices.DeleteFunc(tables, func(table TableInfo) bool { return table.Database != database })
		var references []Reference
		for n := range tables {
			tables[n].Rows, tables[n].RowBytes = 0, 0 // the server's estimates
			full := tables[n].Table()
			require.Equal(t, tables[n].Columns, columnNamesOf(full))
			require.Len(t, full.PrimaryKey, len(tables[n].PrimaryKey))
			for c := range full.Columns {
				_, known := full.Columns[c].ValueKind()
				require.True(t, known, "%s.%s", full.Name, full.Columns[c].Name)
			}
			for _, reference := range tables[n].References {
				reference.Name = "" // the servers name the second one each in their way
				references = append(references, reference)
			}
			tables[n].schema, tables[n].References = Schema{}, nil
		}
		require.ElementsMatch(t, []Reference{
			{Columns: []string{"z", "y"}, Database: database, Table: "a", Referenced: []string{"p`q", "x"}},
			{Columns: []string{"y"}, Database: database, Table: "b", Referenced: []string{"n"}},
		}, references)
		require.Equal(t, []TableInfo{
			{Database: database, Name: "a", Columns: []string{"x", "y", "p`q"}, PrimaryKey: []string{"p`q", "x"}},
			{Database: database, Name: "b", Columns: []string{"n"}, PrimaryKey: []string{"n"}},
			{
				Database: database, Name: "c", Columns: []string{"id", "y", "z"}, PrimaryKey: []string{"id"},
				Cascades: []string{"f`1 (ON DELETE SET NULL, ON UPDATE CASCADE of a)"},
			},
		}, tables)
		databases, err := i.Databases(t.Context())
		require.NoError(t, err)
		require.Contains(t, databases, database)
		require.Equal(t, "'"+o.User+"'@'%'", i.Account(t.Context()))
		require.NoError(t, i.Close())
	}
}

func columnNamesOf(t *Table) []string {
	var names []string
	for i := range t.Columns {
		names = append(names, t.Columns[i].Name)
	}
	return names
}

// inspector makes an Inspector of settings, for the checks that look at nothing else.
func inspector(flavor Flavor, version string, variables ...string) *Inspector {
	i := &Inspector{server: Identity{Flavor: flavor, Version: version, ServerID: 1, UUID: "u"}, variables: map[string]string{}}
	for n := 0; n < len(variables); n += 2 {
		i.variables[variables[n]] = variables[n+1]
	}
	return i
}

func TestChecksOfSettings(t *testing.T) {
	t.Parallel()
	const mysql, mariadb = "9.7.4", "10.11.6-MariaDB-log"
	tests := map[string]struct {
		check  Check
		status CheckStatus
		words  string // in the remedy, or where there is none, in the detail
	}{
		"image minimal":         {inspector(MySQL, mysql, "binlog_row_image", "MINIMAL").checkRowImage(), CheckWarn, "SET PERSIST binlog_row_image = FULL;"},
		"image minimal, cost":   {inspector(MySQL, mysql, "binlog_row_image", "MINIMAL").checkRowImage(), CheckWarn, "reconnect the application's sessions"},
		"image noblob":          {inspector(MariaDB, mariadb, "binlog_row_image", "NOBLOB").checkRowImage(), CheckWarn, "SET GLOBAL binlog_row_image = FULL;"},
		"image without doubles": {inspector(MariaDB, mariadb, "binlog_row_image", "FULL_NODUP").checkRowImage(), CheckOK, "all columns"},
		"partial JSON":          {inspector(MySQL, mysql, "binlog_row_value_options", "PARTIAL_JSON", "binlog_row_image", "FULL").checkPartialJSON(), CheckOK, "whole values"},
		"partial JSON, minimal": {inspector(MySQL, mysql, "binlog_row_value_options", "PARTIAL_JSON", "binlog_row_image", "MINIMAL").checkPartialJSON(), CheckWarn, "binlog_row_value_options = ''"},
		"no partial JSON":       {inspector(MariaDB, mariadb).checkPartialJSON(), CheckOK, "off"},
		"image full":            {inspector(MySQL, mysql, "binlog_row_image", "FULL").checkRowImage(), CheckOK, "FULL"},
		"metadata minimal":      {inspector(MySQL, mysql, "binlog_row_metadata", "MINIMAL").checkMetadata(), CheckWarn, "SET PERSIST binlog_row_metadata = FULL;"},
		"metadata of mariadb":   {inspector(MariaDB, mariadb, "binlog_row_metadata", "NO_LOG").checkMetadata(), CheckWarn, "SET GLOBAL binlog_row_metadata = FULL; and write"},
		"metadata unknown":      {inspector(MySQL, "5.7.44").checkMetadata(), CheckWarn, "upgrade"},
		"gtid on":               {inspector(MySQL, mysql, "gtid_mode", "ON").checkGTIDs(), CheckOK, "gtid_mode=ON"},
		"gtid off":              {inspector(MySQL, mysql, "gtid_mode", "OFF").checkGTIDs(), CheckWarn, "Enabling GTID"},
		"gtid on its way":       {inspector(MySQL, mysql, "gtid_mode", "ON_PERMISSIVE").checkGTIDs(), CheckWarn, "go on to gtid_mode=ON"},
		"gtid of mariadb":       {inspector(MariaDB, mariadb).checkGTIDs(), CheckOK, "always"},
		"retention for ever":    {inspector(MySQL, mysql, "binlog_expire_logs_seconds", "0").checkRetention(), CheckOK, "by hand"},
		"retention not purged":  {inspector(MySQL, mysql, "binlog_expire_logs_seconds", "60", "binlog_expire_logs_auto_purge", "OFF").checkRetention(), CheckOK, "by hand"},
		"retention short":       {inspector(MySQL, mysql, "binlog_expire_logs_seconds", "3600").checkRetention(), CheckWarn, "binlog_expire_logs_seconds = 604800"},
		"retention long":        {inspector(MySQL, mysql, "binlog_expire_logs_seconds", "2592000").checkRetention(), CheckOK, "30 days"},
		"retention in days":     {inspector(MariaDB, mariadb, "expire_logs_days", "1.000000", "binlog_expire_logs_seconds", "0").checkRetention(), CheckWarn, "604800"},
		"retention by size":     {inspector(MariaDB, mariadb, "max_binlog_total_size", "1000").checkRetention(), CheckWarn, "max_binlog_total_size = 0"},
		"server id taken":       {inspector(MySQL, mysql).checkServerID(t.Context(), 1), CheckFail, "another source.server_id"},
		"server id chosen":      {inspector(MySQL, mysql).checkServerID(t.Context(), 0), CheckOK, "chosen"},
		"format":                {inspector(MySQL, mysql, "binlog_format", "MIXED").checkFormat(), CheckFail, "SET PERSIST binlog_format = ROW;"},
		"binlog off":            {inspector(MySQL, mysql, "log_bin", "OFF").checkBinlog(), CheckFail, "log_bin=binlog"},
	}
	for name, test := range tests {
		require.Equal(t, test.status, test.check.Status, name)
		text := test.check.Remedy
		if text == "" {
			text = test.check.Detail
		}
		require.Contains(t, text, test.words, name)
		require.Equal(t, test.status == CheckFail, test.check.Err != nil, name)
	}
}

func TestChecksOfAPlace(t *testing.T) {
	t.Parallel()
	const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	place := func(flavor Flavor, gtids string) *Position {
		set, err := ParseGTIDSet(flavor, gtids)
		require.NoError(t, err)
		return &Position{GTIDs: set, File: "binlog.000001", Offset: 4}
	}
	server := inspector(MySQL, "9.7.4", "gtid_mode", "ON", "gtid_executed", uuid+":1-10", "gtid_purged", uuid+":1-5")
	tests := map[string]struct {
		options PreflightOptions
		fails   string // in the detail; empty where none fails
	}{
		"inside":           {PreflightOptions{Checkpoint: place(MySQL, uuid+":1-7")}, ""},
		"at the end":       {PreflightOptions{Checkpoint: place(MySQL, uuid+":1-10")}, ""},
		"just not purged":  {PreflightOptions{Checkpoint: place(MySQL, uuid+":1-5")}, ""},
		"a held PREPARE":   {PreflightOptions{Checkpoint: place(MySQL, uuid+":1-6:8-10")}, ""},
		"after a failover": {PreflightOptions{Checkpoint: place(MySQL, uuid+":1-7"), Server: Identity{UUID: "other", Version: "9.7.4"}}, ""},
		"purged":           {PreflightOptions{Checkpoint: place(MySQL, uuid+":1-3")}, "purged " + uuid + ":4-5"},
		"other flavor":     {PreflightOptions{Checkpoint: place(MariaDB, "0-1-3"), Server: Identity{Flavor: MariaDB, Version: "10"}}, "written for MariaDB, and MySQL answers"},
		"by file, other":   {PreflightOptions{Checkpoint: &Position{File: "binlog.000001"}, Server: Identity{UUID: "other", Version: "9.7.4"}}, "server other"},
	}
	for name, test := range tests {
		checks := server.CheckPlace(t.Context(), test.options)
		require.NotEmpty(t, checks, name)
		last := checks[len(checks)-1]
		if test.fails == "" {
			require.Equal(t, CheckOK, last.Status, "%s: %s", name, last.Detail)
			continue
		}
		require.Contains(t, last.Detail, test.fails, name)
		var source *SourceError
		require.ErrorAs(t, last.Err, &source, name)
	}
	for gtid, strange := range map[string]string{
		"0-1-3": "", "0-1-5": "", "0-2-9": "", "0-2-8": "", "0-1-6": "0-1-6", "0-3-4": "0-3-4", "0-4-4": "", "1-1-2": "", "": "",
	} {
		maria := inspector(MariaDB, "11.8.2-MariaDB", "gtid_binlog_state", "0-1-5,0-2-9,1-1-2", "gtid_slave_pos", "0-4-4")
		got, err := maria.neverLogged(place(MariaDB, gtid).GTIDs)
		require.NoError(t, err)
		require.Equal(t, strange, got, gtid)
	}
	off := inspector(MySQL, "9.7.4", "gtid_mode", "OFF")
	require.Contains(t, off.CheckPlace(t.Context(), PreflightOptions{Checkpoint: place(MySQL, uuid+":1")})[0].Detail, "gtid_mode=OFF")
}

func TestPlaceByFile(t *testing.T) {
	t.Parallel()
	server := testenv.StartMySQL(t, testenv.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}})
	o := ConnectOptions{Address: server.Addr}
	o.User, o.Password = server.User(t, "REPLICATION SLAVE, REPLICATION CLIENT ON *.*")
	i, err := Inspect(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, i.Close()) }()

	file, offset := server.BinlogPosition(t)
	status := func(file string, offset uint64) Check {
		checks := i.CheckPlace(t.Context(), PreflightOptions{Checkpoint: &Position{File: file, Offset: offset}, Server: i.Server()})
		return checks[len(checks)-1]
	}
	require.Equal(t, CheckOK, status(file, offset).Status)
	require.Contains(t, status(file, offset+1_000_000).Detail, "not the file that it was")
	require.Contains(t, status("binlog.999999", 4).Detail, "has purged binlog.999999")
	server.PurgeBinlogs(t)
	require.Contains(t, status(file, offset).Detail, "has purged "+file)
	_, known := i.Behind(Position{File: file, Offset: offset})
	require.False(t, known)
}
