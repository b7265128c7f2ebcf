package pipeline_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/internal/testenv/daemon"
)

// Numbers of Kafka's requests.
const (
	kafkaProduce        = 0
	kafkaInitProducerID = 22
	kafkaAddPartitions  = 24
	kafkaEndTransaction = 26
)

// kafkaTap stands between clients and a broker, and calls a function at a request's passing.
type kafkaTap struct {
	addr string
	// at is called once, when the request of the key has come the n-th time; then it is forwarded, or not.
	at atomic.Pointer[tapPoint]
}

type tapPoint struct {
	key     int16
	nth     int64
	seen    atomic.Int64
	forward bool   // the broker gets the request
	reached func() // before the client gets an answer
}

func (k *kafkaTap) serve(listener net.Listener, broker string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", broker)
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
		}()
		go func() {
			k.requests(client, server)
			_ = server.Close()
		}()
	}
}

// requests carries requests, each of which is its length and then its key.
func (k *kafkaTap) requests(client io.Reader, server io.Writer) {
	var head [6]byte
	for {
		if _, err := io.ReadFull(client, head[:]); err != nil {
			return
		}
		key := int16(binary.BigEndian.Uint16(head[4:]))
		body := make([]byte, binary.BigEndian.Uint32(head[:4])-2)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		p := k.at.Load()
		hit := p != nil && p.key == key && p.seen.Add(1) == p.nth
		if hit && !p.forward {
			p.reached()
			return
		}
		if _, err := server.Write(append(head[:], body...)); err != nil {
			return
		}
		if hit {
			p.reached()
		}
	}
}

// TestTogetherKilledAtEachRequest kills the program at each request of a transaction: before the broker gets it, and just after.
func TestTogetherKilledAtEachRequest(t *testing.T) {
	t.Parallel()
	port, release, err := daemon.ReservePort()
	require.NoError(t, err)
	defer release()
	listener, err := net.Listen("tcp", daemon.Address(port))
	require.NoError(t, err)
	defer listener.Close()
	cluster := testenv.StartKafka(t, testenv.KafkaOptions{Properties: map[string]string{
		"advertised.listeners": "PLAINTEXT://" + daemon.Address(port),
	}})
	tap := &kafkaTap{addr: daemon.Address(port)}
	go tap.serve(listener, cluster.Brokers[0])

	l := newLoad(t, testenv.MySQL(t))
	s := newSettings(t, l.server, l.db+".*").into(together{&kafkaDestination{cluster: cluster, topics: topicsOf(l.db)}})
	s.Publish.Kafka.Brokers = []string{tap.addr}
	s.finish(t, l.server)
	l.during(t, func() {
		for _, key := range []int16{kafkaInitProducerID, kafkaAddPartitions, kafkaProduce, kafkaEndTransaction} {
			for _, forward := range []bool{false, true} {
				reached := make(chan struct{})
				tap.at.Store(&tapPoint{key: key, nth: nthOf(key), forward: forward, reached: func() { close(reached) }})
				d := s.launch(t, "")
				select {
				case <-reached:
				case <-d.ended:
					require.FailNow(t, "binlogd ended", d.stderr.String())
				}
				d.kill()
				tap.at.Store(nil)
			}
		}
	})
	s.finish(t, l.server)
	t.Logf("%+v", l.verifyOnce(t, s))
}

// nthOf is which request of a key is in the midst of publishing: the lease and the first save come before it.
func nthOf(key int16) int64 {
	if key == kafkaInitProducerID {
		return 2 // the first one of Ping is without a transactional id, or this one is
	}
	return 8
}

// TestTogetherHugeTransaction kills the program in the middle of a transaction of many rows, of which each comes once.
func TestTogetherHugeTransaction(t *testing.T) {
	t.Parallel()
	rows := 60_000
	if kills(t, 0) > 0 {
		rows = 2_000_000
	}
	server := testenv.MySQL(t)
	db := server.Database(t)
	server.Exec(t, "CREATE TABLE "+db+".huge (id INT PRIMARY KEY, v INT)")
	cluster := testenv.Kafka(t)
	s := newSettings(t, server, db+".*").into(together{&kafkaDestination{cluster: cluster, topics: []string{db + ".huge"}}})
	s.finish(t, server)
	d := s.daemon(t, "")
	server.Exec(t, "SET SESSION cte_max_recursion_depth = 10000000", "USE "+db, fmt.Sprintf(`INSERT INTO huge
		WITH RECURSIVE n (id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id < %d) SELECT id, 7 FROM n`, rows-1))
	reader := s.view(t)
	defer reader.Close()
	inside := uint64(0)
	require.Eventually(t, func() bool {
		record, err := reader.Load(t.Context())
		if err == nil && record.Partial != nil {
			inside = record.Partial.Place
		}
		return inside > 0
	}, patience, time.Millisecond, "the checkpoint is never inside the transaction")
	d.kill()
	d = s.daemon(t, "")
	s.awaitTogether(t, server, d)
	d.stop(t)
	seen := make([]bool, rows)
	found := 0
	for _, m := range cluster.Consume(t, db+".huge") {
		id, err := strconv.Atoi(string(m.Key))
		require.NoError(t, err)
		require.False(t, seen[id], "row %d came twice", id)
		seen[id] = true
		found++
	}
	require.Equal(t, rows, found)
	t.Logf("%d rows, killed with %d of them in the checkpoint", rows, inside)
}
