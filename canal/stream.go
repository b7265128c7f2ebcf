package canal

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// Error numbers in the stream of a binlog dump.
const (
	errFatalReadingBinlog = 1236 // ER_MASTER_FATAL_ERROR_READING_BINLOG: purged, corrupt, or another replica with the same id
	errReplicaSameID      = "slave with the same server_uuid/server_id"
)

// writePatience is for how long the server waits for us to read before it gives the connection up.
const writePatience = 10 * time.Minute

// stream is one connection that dumps the binlog. go-mysql's syncer carries it in raw mode; what it does beyond that is kept
// from it: it does not reconnect (it would start from where it began), and it does not KILL its old connection (behind a proxy
// the number may be a stranger's), since it may dial only once.
type stream struct {
	syncer   *replication.BinlogSyncer
	streamer *replication.BinlogStreamer
	handler  *handler
	socket   atomic.Pointer[idleConn]
}

// streamOptions say how to dump.
type streamOptions struct {
	connect   ConnectOptions
	flavor    Flavor
	serverID  uint32
	heartbeat time.Duration
	// handle takes each event; its error ends the stream. It may block: then the server waits.
	handle func(rawEvent) error
	read   *atomic.Uint64 // counts bytes
	heard  *atomic.Int64  // when something arrived last, in Unix nanoseconds
}

// openStream connects and asks for the binlog from a place on.
func openStream(ctx context.Context, o streamOptions, from Position) (*stream, error) {
	config, err := o.connect.TLSConfig()
	if err != nil {
		return nil, err
	}
	s, err := o.open(ctx, config, from)
	if config != nil && o.connect.TLS.mode() == TLSPreferred && noTLS(err) {
		s, err = o.open(ctx, nil, from)
	}
	if err != nil {
		return nil, o.connect.explain(err)
	}
	return s, nil
}

func (o streamOptions) config(s *stream) (replication.BinlogSyncerConfig, error) {
	address, err := dialAddress(o.connect.Address)
	if err != nil {
		return replication.BinlogSyncerConfig{}, &ConfigError{Err: err, Remedy: "mend source.address"}
	}
	flavor := mysql.MySQLFlavor
	if o.flavor == MariaDB {
		flavor = mysql.MariaDBFlavor
	}
	var once sync.Once
	return replication.BinlogSyncerConfig{
		ServerID:                o.serverID,
		Flavor:                  flavor,
		Host:                    address, // with Port 0 it is the whole address
		User:                    o.connect.User,
		Password:                o.connect.Password,
		RawModeEnabled:          true,
		DisableRetrySync:        true,
		HeartbeatPeriod:         o.heartbeat,
		SynchronousEventHandler: s.handler,
		Logger:                  slog.New(slog.DiscardHandler), // it logs each connection as an error
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			err := errors.New("one connection only")
			once.Do(func() {
				var d net.Dialer
				var socket net.Conn
				if socket, err = d.DialContext(ctx, network, address); err == nil {
					s.socket.Store(&idleConn{Conn: socket, limit: SilenceLimit(o.heartbeat), options: o})
				}
			})
			if err != nil {
				return nil, err
			}
			return s.socket.Load(), nil
		},
	}, nil
}

func (o streamOptions) open(ctx context.Context, tls *tls.Config, from Position) (*stream, error) {
	s := &stream{handler: &handler{handle: o.handle}}
	config, err := o.config(s)
	if err != nil {
		return nil, err
	}
	config.TLSConfig = tls
	config.Option = func(c *client.Conn) error {
		// A slow sink holds up the reader for longer than the server's default of a minute.
		_, err := c.Execute(fmt.Sprintf("SET SESSION net_write_timeout = %d", int(writePatience.Seconds())))
		return err
	}
	s.syncer = replication.NewBinlogSyncer(config)
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	switch {
	case from.GTIDs != nil:
		var set mysql.GTIDSet
		if set, err = mysql.ParseGTIDSet(config.Flavor, from.GTIDs.String()); err == nil {
			s.streamer, err = s.syncer.StartSyncGTID(set)
		}
	case from.Offset > math.MaxUint32:
		err = fmt.Errorf("resume at %s:%d: the protocol reaches no offset above 4 GiB without GTIDs", from.File, from.Offset)
	default:
		s.streamer, err = s.syncer.StartSync(mysql.Position{Name: from.File, Pos: uint32(from.Offset)})
	}
	if err != nil {
		s.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return s, nil
}

// wait waits until the stream ends and says why. The handler's error comes as it was given.
func (s *stream) wait(ctx context.Context) error {
	_, err := s.streamer.GetEvent(ctx)
	if failed := s.handler.failed.Load(); failed != nil {
		return *failed
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if refusal, ok := errors.AsType[*mysql.MyError](err); ok {
		return refusal
	}
	return fmt.Errorf("the connection ended: %w", err) // on its own go-mysql's error would be logged with a stack trace
}

func (s *stream) close() {
	s.cut()
	s.syncer.Close()
}

// cut makes whoever reads from the connection return. The syncer closes it then: closing it here would have the syncer close it a
// second time while its own goroutine still reads.
func (s *stream) cut() {
	if c := s.socket.Load(); c != nil {
		c.ended.Store(true)
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

// handler takes the events from go-mysql's syncer.
type handler struct {
	handle   func(rawEvent) error
	checksum bool
	failed   atomic.Pointer[error]
}

// HandleEvent implements replication.EventHandler.
func (h *handler) HandleEvent(e *replication.BinlogEvent) error {
	raw := rawEvent(e.RawData)
	if f, ok := e.Event.(*replication.FormatDescriptionEvent); ok {
		h.checksum = f.ChecksumAlgorithm == replication.BINLOG_CHECKSUM_ALG_CRC32
	} else if h.checksum && len(raw) >= headerSize+checksumSize {
		raw = raw[:len(raw)-checksumSize]
	}
	if err := h.handle(raw); err != nil {
		h.failed.CompareAndSwap(nil, &err)
		return err
	}
	return nil
}

// idleConn ends a connection on which nothing arrives for longer than the heartbeat allows: the network may swallow packets without
// closing it.
type idleConn struct {
	net.Conn
	limit   time.Duration
	options streamOptions
	ended   atomic.Bool // nothing is to be read any more
}

// SilenceLimit is how long nothing may arrive before a connection counts as dead.
func SilenceLimit(heartbeat time.Duration) time.Duration { return 2*heartbeat + heartbeat/2 }

func (c *idleConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	if c.ended.Load() { // the deadline that goes with it may have been set before this one
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.options.read.Add(uint64(n))
		c.options.heard.Store(time.Now().UnixNano())
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		err = fmt.Errorf("nothing was heard for %s, not even a heartbeat: %w", c.limit, err)
	}
	return n, err
}

// explainStream turns the end of a stream into what it means: an error to try again after, or one that ends the run.
func explainStream(err error) error {
	var refusal *mysql.MyError
	if !errors.As(err, &refusal) {
		return err
	}
	if accountLacks(err) {
		return &ConfigError{Err: fmt.Errorf("read the binlog: %w", err), Remedy: "grant it: GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO the account of source.user"}
	}
	if refusal.Code != errFatalReadingBinlog {
		return err
	}
	if strings.Contains(refusal.Message, errReplicaSameID) {
		return &collisionError{err}
	}
	return &refusedError{&SourceError{Err: fmt.Errorf("read the binlog: %w", err), Remedy: waysOut}}
}

// refusedError: the server says that it cannot give the binlog from the place asked for. Under load MySQL says so at times of binlogs
// that are there (it takes a file that it could not open at once for one that is gone), so once is not enough to end the run.
type refusedError struct{ *SourceError }

func (e *refusedError) Unwrap() error { return e.SourceError }

// waysOut from a checkpoint that the server cannot serve.
const waysOut = "restore the missing binlogs, or point source.address at a server that still has them, or publish the tables anew and begin with a new checkpoint (source.start: latest and another checkpoint.path)"

// collisionError: another replica joined with our server id, and the server ended this connection for it.
type collisionError struct{ err error }

func (e *collisionError) Error() string { return e.err.Error() }
func (e *collisionError) Unwrap() error { return e.err }
