package publish_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/internal/testenv/daemon"
	"github.com/binlogd/binlogd/internal/testenv/fetch"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
	"github.com/binlogd/binlogd/publish/publishtest"
)

// certificates are PEM files: an authority, and a certificate for the given host by it.
type certificates struct{ ca, cert, key, both string }

func makeCertificates(t testing.TB, host string) certificates {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, blocks ...*pem.Block) string {
		var data []byte
		for _, b := range blocks {
			data = append(data, pem.EncodeToMemory(b)...)
		}
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := template(1, "authority")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	require.NoError(t, err)

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	leaf := template(2, host)
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = []net.IP{ip}
	} else {
		leaf.DNSNames = []string{host}
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)

	certBlock, keyBlock := &pem.Block{Type: "CERTIFICATE", Bytes: leafDER}, &pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}
	return certificates{
		ca:   write("ca.pem", &pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		cert: write("cert.pem", certBlock),
		key:  write("key.pem", keyBlock),
		both: write("both.pem", keyBlock, certBlock),
	}
}

// secureKafka is a Kafka with an open listener for administration and one with TLS, SASL
// and access control.
type secureKafka struct {
	open, secure string
	certificates certificates
}

func startSecureKafka(t *testing.T) secureKafka {
	t.Helper()
	software, err := fetch.KafkaServer(t.Context())
	require.NoError(t, err)
	var ports [3]int
	for i := range ports {
		port, release, err := daemon.ReservePort()
		require.NoError(t, err)
		t.Cleanup(release)
		ports[i] = port
	}
	k := secureKafka{open: daemon.Address(ports[0]), secure: daemon.Address(ports[2]), certificates: makeCertificates(t, "127.0.0.1")}
	node := daemon.KafkaNode{ID: 1, Dir: filepath.Join(t.TempDir(), "kafka"), Port: ports[0], Controller: ports[1]}
	const listener = "listener.name.secure."
	require.NoError(t, daemon.NewKafka(t.Context(), software, []daemon.KafkaNode{node}, map[string]string{
		"listeners":                                 fmt.Sprintf("PLAINTEXT://%s,CONTROLLER://%s,SECURE://%s", k.open, daemon.Address(ports[1]), k.secure),
		"listener.security.protocol.map":            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL",
		"sasl.enabled.mechanisms":                   "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		listener + "ssl.keystore.type":              "PEM",
		listener + "ssl.keystore.location":          k.certificates.both,
		listener + "plain.sasl.jaas.config":         `org.apache.kafka.common.security.plain.PlainLoginModule required user_writer="secret";`,
		listener + "scram-sha-256.sasl.jaas.config": `org.apache.kafka.common.security.scram.ScramLoginModule required;`,
		listener + "scram-sha-512.sasl.jaas.config": `org.apache.kafka.common.security.scram.ScramLoginModule required;`,
		"authorizer.class.name":                     "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                               "User:ANONYMOUS",
	}))
	process, err := daemon.Start(t.Context(), daemon.Kafka(software, node, 1))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, process.Stop()) })

	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	admin, err := sarama.NewClusterAdmin([]string{k.open}, config)
	require.NoError(t, err)
	defer admin.Close()
	for user, mechanism := range map[string]sarama.ScramMechanismType{"writer256": sarama.SCRAM_MECHANISM_SHA_256, "writer512": sarama.SCRAM_MECHANISM_SHA_512} {
		_, err := admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{{
			Name: user, Mechanism: mechanism, Iterations: 4096, Salt: []byte("some salt"), Password: []byte("secret"),
		}})
		require.NoError(t, err)
	}
	for _, user := range []string{"writer", "writer256", "writer512"} {
		rights := &sarama.ResourceAcls{
			Resource: sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: "test.", ResourcePatternType: sarama.AclPatternPrefixed},
		}
		for _, operation := range []sarama.AclOperation{sarama.AclOperationWrite, sarama.AclOperationCreate, sarama.AclOperationDescribe} {
			rights.Acls = append(rights.Acls, &sarama.Acl{Principal: "User:" + user, Host: "*", Operation: operation, PermissionType: sarama.AclPermissionAllow})
		}
		require.NoError(t, admin.CreateACLs([]*sarama.ResourceAcls{rights}))
	}
	return k
}

func TestKafkaSecurity(t *testing.T) {
	server := startSecureKafka(t)
	options := func(mechanism, user, password string, mode publish.TLSOptions) publish.KafkaOptions {
		return publish.KafkaOptions{Brokers: []string{server.secure}, TLS: &mode, SASL: &publish.SASLOptions{Mechanism: mechanism, User: user, Password: password}}
	}
	trusted := publish.TLSOptions{CA: server.certificates.ca}
	for name, o := range map[string]publish.KafkaOptions{
		"plain":        options("", "writer", "secret", trusted),
		"scram 256":    options("SCRAM-SHA-256", "writer256", "secret", trusted),
		"scram 512":    options("SCRAM-SHA-512", "writer512", "secret", trusted),
		"verify-ca":    options("PLAIN", "writer", "secret", publish.TLSOptions{Mode: "verify-ca", CA: server.certificates.ca}),
		"not verified": options("PLAIN", "writer", "secret", publish.TLSOptions{Mode: "required"}),
	} {
		t.Run(name, func(t *testing.T) {
			sink := openKafka(t, o)
			closeAfter(t, sink)
			require.Eventually(t, func() bool { return sink.Ping(t.Context()) == nil }, 30*time.Second, 100*time.Millisecond)
			topic := freshTopic(t)
			events := publishtest.Events([]string{topic}, 3, 100, 100)
			require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events)))
			publishtest.CheckOnce(t, events, gotOf(t, []string{server.open}, topic))
		})
	}

	for name, c := range map[string]struct {
		options publish.KafkaOptions
		want    string
	}{
		"wrong password":  {options("PLAIN", "writer", "wrong-one", trusted), "check publish.kafka.sasl"},
		"wrong scram":     {options("SCRAM-SHA-512", "writer512", "wrong-one", trusted), "check publish.kafka.sasl"},
		"wrong authority": {options("PLAIN", "writer", "secret", publish.TLSOptions{CA: makeCertificates(t, "x").ca}), "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			sink := openKafka(t, c.options)
			closeAfter(t, sink)
			err := sink.Ping(t.Context())
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), c.options.SASL.Password)
			err = sink.Publish(t.Context(), publish.NewBatch([]mapping.Event{publishtest.Event("test.t", "k", 1, 0)}))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), c.options.SASL.Password)
		})
	}

	t.Run("no right to write", func(t *testing.T) {
		sink := openKafka(t, options("PLAIN", "writer", "secret", trusted))
		closeAfter(t, sink)
		event := publishtest.Event("other.topic", "k", 1, 0)
		err := sink.Publish(t.Context(), publish.NewBatch([]mapping.Event{event}))
		var permanent *publish.PermanentError
		require.ErrorAs(t, err, &permanent)
		require.ErrorContains(t, err, "kafka-acls.sh --add")
		require.ErrorContains(t, err, "other.topic")
	})
}

func TestRedisTLS(t *testing.T) {
	server := testenv.Redis(t)
	files := makeCertificates(t, "127.0.0.1")
	address := serveTLS(t, files, server.Addr)
	for name, mode := range map[string]publish.TLSOptions{
		"verified":     {CA: files.ca},
		"verify-ca":    {Mode: "verify-ca", CA: files.ca},
		"not verified": {Mode: "required"},
	} {
		t.Run(name, func(t *testing.T) {
			sink := openRedis(t, publish.RedisOptions{Address: address, TLS: &mode})
			closeAfter(t, sink)
			require.NoError(t, sink.Ping(t.Context()))
			topic := freshTopic(t)
			events := publishtest.Events([]string{topic}, 3, 100, 100)
			require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events)))
			publishtest.CheckOnce(t, events, readRedis(t, server.Client(), topic))
		})
	}
	other := makeCertificates(t, "redis.example")
	for name, mode := range map[string]publish.TLSOptions{
		"wrong authority":                    {CA: other.ca},
		"wrong authority, name not verified": {Mode: "verify-ca", CA: other.ca},
		"wrong name":                         {CA: files.ca, ServerName: "redis.example"},
	} {
		t.Run(name, func(t *testing.T) {
			sink := openRedis(t, publish.RedisOptions{Address: address, TLS: &mode})
			closeAfter(t, sink)
			require.ErrorContains(t, sink.Ping(t.Context()), "x509")
		})
	}
}

// serveTLS terminates TLS in front of a server and returns the address.
func serveTLS(t testing.TB, files certificates, target string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(files.cert, files.key)
	require.NoError(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	require.NoError(t, err)
	var joined sync.WaitGroup
	joined.Go(func() {
		for {
			outside, err := listener.Accept()
			if err != nil {
				return
			}
			joined.Go(func() {
				defer outside.Close()
				inside, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				joined.Go(func() { _, _ = io.Copy(outside, inside); _ = outside.Close() })
				_, _ = io.Copy(inside, outside)
				_ = inside.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		joined.Wait()
	})
	return listener.Addr().String()
}
