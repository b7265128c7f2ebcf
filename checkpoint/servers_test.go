package checkpoint_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/checkpoint/checkpointtest"
	"github.com/binlogd/binlogd/internal/testenv"
)

// testLease is short enough for tests to wait for its end.
const testLease = time.Second

// server is a kind of server that checkpoints are kept on.
type server struct {
	// options are where the checkpoint at a place is kept.
	options func(place string) checkpoint.Options
	place   func(t *testing.T) string
	damage  func(t *testing.T, place string, content []byte)
}

func (s server) open(place, name string) (checkpoint.Store, error) {
	return checkpoint.Open(context.Background(), s.options(place), name, slog.New(slog.DiscardHandler))
}

func (s server) view(place, name string) (checkpoint.Reader, error) {
	return checkpoint.View(s.options(place), name)
}

func (s server) subject() checkpointtest.Subject {
	return checkpointtest.Subject{Place: s.place, Open: s.open, View: s.view, Named: true, Damage: s.damage}
}

func onMySQL(db *testenv.Server) server {
	return server{
		options: func(place string) checkpoint.Options {
			return checkpoint.Options{Store: checkpoint.KindMySQL, Lease: testLease, MySQL: &checkpoint.MySQLOptions{
				ConnectOptions: canal.ConnectOptions{Address: db.Addr, User: db.RootUser, Password: db.RootPassword}, Database: place,
			}}
		},
		place: func(t *testing.T) string { return db.Database(t) },
		damage: func(t *testing.T, place string, content []byte) {
			store, err := onMySQL(db).open(place, "shop") // makes the tables
			require.NoError(t, err)
			require.NoError(t, store.Close())
			_, err = db.DB().ExecContext(t.Context(), "INSERT INTO `"+place+"`.binlogd_checkpoint VALUES ('shop', ?)", content)
			require.NoError(t, err)
		},
	}
}

func onRedis(r *testenv.RedisServer) server {
	return server{
		options: func(place string) checkpoint.Options {
			return checkpoint.Options{Store: checkpoint.KindRedis, Lease: testLease, Redis: &checkpoint.RedisOptions{Address: r.Addr, Prefix: place}}
		},
		place: func(*testing.T) string { return testenv.UniqueName("cp") + ":" },
		damage: func(t *testing.T, place string, content []byte) {
			require.NoError(t, r.Client().Set(t.Context(), place+"{shop}", content, 0).Err())
		},
	}
}

func onKafka(k *testenv.KafkaCluster) server {
	return server{
		options: func(place string) checkpoint.Options {
			return checkpoint.Options{Store: checkpoint.KindKafka, Lease: testLease, Kafka: &checkpoint.KafkaOptions{Brokers: k.Brokers, Topic: place}}
		},
		place: func(t *testing.T) string { return k.Topic(t) },
		damage: func(t *testing.T, place string, content []byte) {
			k.CreateTopic(t, place, 1, map[string]string{"cleanup.policy": "compact"})
			config := k.ClientConfig()
			config.Producer.Return.Successes = true
			producer, err := sarama.NewSyncProducer(k.Brokers, config)
			require.NoError(t, err)
			defer producer.Close()
			_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: place, Key: sarama.StringEncoder("shop"), Value: sarama.ByteEncoder(content)})
			require.NoError(t, err)
		},
	}
}

func TestMySQLConformance(t *testing.T) {
	t.Parallel()
	checkpointtest.Run(t, onMySQL(testenv.MySQL(t)).subject())
}

func TestMariaDBConformance(t *testing.T) {
	t.Parallel()
	checkpointtest.Run(t, onMySQL(testenv.MariaDB(t)).subject())
}

func TestRedisConformance(t *testing.T) {
	t.Parallel()
	checkpointtest.Run(t, onRedis(testenv.Redis(t)).subject())
}

func TestKafkaConformance(t *testing.T) {
	t.Parallel()
	checkpointtest.Run(t, onKafka(testenv.Kafka(t)).subject())
}

// TestTopicThatIsNotCompacted: Kafka would delete checkpoints with age.
func TestTopicThatIsNotCompacted(t *testing.T) {
	t.Parallel()
	k := testenv.Kafka(t)
	s := onKafka(k)
	place := s.place(t)
	k.CreateTopic(t, place, 1, nil)
	_, err := s.open(place, "shop")
	require.ErrorAs(t, err, new(*checkpoint.AccessError))
	require.ErrorContains(t, err, "cleanup.policy=compact")
	reader, err := s.view(place, "shop")
	require.NoError(t, err)
	_, err = reader.Survey(t.Context())
	require.ErrorContains(t, err, "cleanup.policy=delete")
	require.NoError(t, reader.Close())

	created := s.place(t)
	store, err := s.open(created, "shop")
	require.NoError(t, err)
	survey, err := store.Survey(t.Context())
	require.NoError(t, err)
	require.Len(t, survey.Warnings, 1)
	require.Contains(t, survey.Warnings[0].Detail, "one copy")
	require.NoError(t, store.Close())
}
