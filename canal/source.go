package canal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of SourceOptions.
const (
	DefaultHeartbeat   = 5 * time.Second
	DefaultMaxInFlight = 16 << 20

	segmentSize  = 256 << 10 // small transactions are handed on together up to this size
	segmentCount = 1024      // and number
	heldInMemory = 1 << 20   // bytes of one transaction that waits, before it goes to a file

	// maxRefusals in a row are taken for passing ones.
	maxRefusals = 5

	backoffInitial = 100 * time.Millisecond
	backoffMax     = 10 * time.Second
)

// SourceOptions configure a Source.
type SourceOptions struct {
	Connect ConnectOptions
	// Servers choose among the addresses of Connect; nil for the source's own.
	Servers *Servers
	// ServerID is the replica's id; 0 lets the source choose one that is free.
	ServerID uint32
	// Heartbeat is how often the server is asked to say that it is alive when it has nothing
	// else to say. A connection silent for two and a half times as long is given up.
	Heartbeat time.Duration
	// MaxInFlight bounds the bytes between the reader and the sink.
	MaxInFlight int64
	// Captured says which tables' rows are wanted: a statement-format change to one of them ends the run.
	Captured func(database, table string) bool
	// From is where to begin.
	From Resume
	// Until is a place of the same server to end at: behind the transaction with which all before it is read, Next gives ErrReached. Nil
	// reads on for ever. With GTIDs it is the set that counts, else file and offset.
	Until *Position
	// History keeps the schemas of the time; nil keeps them while the source is open.
	History SchemaHistory
	// SpillDir is where rows wait that may not count in the end, of large prepared XA transactions and of MariaDB's large transactions;
	// empty for the system's temporary folder.
	SpillDir string
	// XAPatience is how long an XA transaction may stay prepared before it is warned of; 0 for DefaultXAPatience.
	XAPatience time.Duration
	Logger     *slog.Logger
}

// Resume says from where to read, as a checkpoint or Locate tells.
type Resume struct {
	Position  Position
	Held      []Prepared
	Published *Position
	Inside    *Inside
	// SchemaVersion is the newest entry of the schema history that the checkpoint needs; 0 without one.
	SchemaVersion uint64
	// Server is who wrote the binlog that Position is of; empty to accept any.
	Server Identity
	// ReadAt is when Position was read, by this machine's clock; zero where that is not known.
	ReadAt time.Time
}

// Source reads a server's binlog and hands it on in commit order. It reconnects by itself.
type Source struct {
	opts    SourceOptions
	servers *Servers
	// schemaVersion is that of the place where reading begins.
	schemaVersion uint64
	cutter        *cutter
	budget        *budget
	ended         bool // Until is reached
	xaWatch       xaWatch
	ctx           context.Context
	cancel        context.CancelFunc
	done          chan struct{}

	mu      sync.Mutex
	pending *Segment
	ready   chan struct{} // has room for one: pending holds something, or reading ended
	taken   chan struct{} // has room for one: pending was taken
	failed  error         // why reading ended
	status  Status

	bytesRead atomic.Uint64
	heard     atomic.Int64
	waiting   atomic.Bool // for room: the server is not listened to meanwhile
}

// OpenSource connects, makes sure that the server can serve the place to begin from, and starts to read. It waits for a server that
// does not answer, until ctx ends; a *ConfigError or *SourceError cannot be mended by waiting.
func OpenSource(ctx context.Context, o SourceOptions) (*Source, error) {
	if o.Heartbeat == 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.Servers == nil {
		o.Servers = NewServers(o.Connect)
	}
	if o.XAPatience == 0 {
		o.XAPatience = DefaultXAPatience
	}
	chosen := o.ServerID == 0
	var server Identity
	err := o.insist(ctx, func() error {
		answer, err := o.Servers.Choose(ctx, o.From)
		server = answer.Server
		if err == nil && chosen {
			o.ServerID, err = chooseServerID(ctx, o.Servers.Present())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	o.changed(o.From.Server, server)
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Source{
		opts: o, servers: o.Servers, budget: newBudget(o.MaxInFlight),
		ctx: run, cancel: cancel, done: make(chan struct{}),
		ready: make(chan struct{}, 1), taken: make(chan struct{}, 1),
		status: Status{Server: server, Read: Position{File: o.From.Position.File, Offset: o.From.Position.Offset}},
	}
	s.cutter, s.xaWatch.patience = s.newCutter(server), o.XAPatience
	err = o.insist(ctx, func() (err error) {
		s.cutter.schemas, err = openSchemas(ctx, run, schemaOptions{
			connect: o.Servers.Present(), captured: o.Captured, history: o.History, from: o.From, server: server, logger: o.Logger,
		})
		return err
	})
	if err != nil {
		cancel()
		return nil, err
	}
	s.schemaVersion = s.cutter.schemas.version
	s.heard.Store(time.Now().UnixNano())
	s.ended = s.reached(s.cutter.place)
	go func() {
		defer close(s.done)
		defer s.cutter.xa.close()
		defer s.cutter.schemas.closeConn()
		s.fail(s.read(chosen))
	}()
	return s, nil
}

// insist asks the server until it answers, or says something that waiting cannot mend, or ctx ends.
func (o *SourceOptions) insist(ctx context.Context, ask func() error) error {
	for delay := backoffInitial; ; delay = min(2*delay, backoffMax) {
		err := ask()
		if err == nil || endsTheRun(err) || ctx.Err() != nil {
			return err
		}
		o.Logger.Warn("the source does not answer; connecting again", "error", err, "wait", delay)
		if !sleep(ctx, delay/2+rand.N(delay/2)) {
			return ctx.Err()
		}
	}
}

func (s *Source) newCutter(server Identity) *cutter {
	from := s.opts.From
	c := &cutter{
		flavor: server.Flavor, captured: s.opts.Captured, pieceSize: s.budget.pieceSize, emit: s.emit, logger: s.opts.Logger,
		place:     place{file: from.Position.File, offset: from.Position.Offset},
		told:      place{file: from.Position.File, offset: from.Position.Offset},
		started:   make(map[string]chan ordinals),
		published: from.Published,
		lookBack:  s.lookBack,
		reach:     &statementReach{ctx: s.ctx, connect: s.opts.Servers.Present, captured: s.opts.Captured},
		xa: &xaHold{
			holes: server.Flavor == MySQL && from.Position.GTIDs != nil, dir: s.opts.SpillDir, limit: heldInMemory,
			missing: append([]Prepared(nil), from.Held...),
		},
	}
	if from.Position.GTIDs != nil {
		c.read = from.Position.GTIDs.Clone()
	}
	if from.Server.Version != "" || from.Position.GTIDs == nil {
		c.source = &from.Server // whose the place is
	}
	c.reads(server)
	if from.Inside != nil {
		c.resumeInside(*from.Inside)
	}
	return c
}

// SchemaVersion is the newest entry of the schema history that is needed where reading begins.
func (s *Source) SchemaVersion() uint64 { return s.schemaVersion }

// Server is who is being read.
func (s *Source) Server() Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.Server
}

// Next gives what was read next. It waits until there is something, ctx ends, or reading has ended for good, which the error then
// explains: ErrReached where Until is reached.
func (s *Source) Next(ctx context.Context) (*Segment, error) {
	for {
		s.mu.Lock()
		segment, err := s.pending, s.failed
		s.pending = nil
		s.mu.Unlock()
		if segment != nil {
			signal(s.taken)
			return segment, s.budget.settle(ctx, segment.reserved)
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Status is what can be said now.
func (s *Source) Status() Status {
	s.mu.Lock()
	st := s.status
	s.mu.Unlock()
	st.Address, st.Failovers = s.servers.Present().Address, s.servers.Failovers()
	st.BytesRead = s.bytesRead.Load()
	st.LastEventAt = time.Unix(0, s.heard.Load())
	if s.waiting.Load() { // then silence says nothing of the connection
		st.LastEventAt = time.Now()
	}
	st.BytesInFlight = s.budget.inFlight()
	return st
}

// Close ends reading. Segments handed out stay valid.
func (s *Source) Close() error {
	s.cancel()
	<-s.done
	return nil
}

// reached reports whether everything before Until is read, at is where reading stands.
func (s *Source) reached(at place) bool {
	until := s.opts.Until
	switch {
	case until == nil:
		return false
	case until.GTIDs != nil && s.cutter.read != nil:
		return s.cutter.read.ContainsSet(until.GTIDs)
	}
	return !at.before(place{until.File, until.Offset})
}

// emit takes a transaction or piece from the cutter and waits until there is room for it.
func (s *Source) emit(t *Transaction) error {
	if t.Last {
		s.ended = s.reached(place{t.EndFile, t.EndOffset})
	}
	s.waiting.Store(true)
	defer s.waiting.Store(false)
	cost := s.budget.cost(t.Bytes)
	if err := s.budget.acquire(s.ctx, cost); err != nil {
		return err
	}
	size := min(segmentSize, s.budget.pieceSize())
	for {
		s.mu.Lock()
		p := s.pending
		if p == nil || p.Bytes+t.Bytes <= size && len(p.Transactions) < segmentCount {
			if p == nil {
				p = &Segment{budget: s.budget}
				s.pending = p
			}
			p.Transactions = append(p.Transactions, t)
			p.Bytes += t.Bytes
			p.reserved += cost
			s.mu.Unlock()
			signal(s.ready)
			return nil
		}
		s.mu.Unlock()
		select {
		case <-s.taken:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// read connects again and again until the source is closed or cannot go on.
func (s *Source) read(mayChooseID bool) error {
	delay := time.Duration(0)
	refusals := 0
	for {
		if s.ended {
			return ErrReached
		}
		before := s.cutter.place
		err := s.connection(mayChooseID)
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if errors.Is(err, errScanned) {
			return ErrReached
		}
		if s.cutter.place != before {
			delay, refusals = 0, 0
		}
		var collision *collisionError
		var refused *refusedError
		switch {
		case errors.As(err, &refused) && refusals < maxRefusals:
			refusals++ // the checks before each connection find what is really purged
		case errors.As(err, &collision) && mayChooseID:
			s.opts.Logger.Warn("another replica joined the server with our server id: choosing another", "server_id", s.opts.ServerID)
			id, chooseErr := chooseServerID(s.ctx, s.servers.Present())
			if chooseErr == nil {
				s.opts.ServerID = id
			}
		case errors.As(err, &collision):
			return &ConfigError{
				Err:    fmt.Errorf("another replica uses server id %d: %w", s.opts.ServerID, err),
				Remedy: "give source.server_id a number that no other server or replica has, or leave it out to have one chosen",
			}
		case endsTheRun(err) && !nameNotFound(err):
			return err
		}
		s.lost(err, delay)
		if !sleep(s.ctx, delay/2+rand.N(delay/2+1)) {
			return s.ctx.Err()
		}
		delay = min(max(2*delay, backoffInitial), backoffMax)
	}
}

// connection reads over one connection until it ends, and says why it did.
func (s *Source) connection(mayChooseID bool) error {
	s.cutter.reconnected()
	resume := s.resume()
	answer, err := s.servers.Choose(s.ctx, resume)
	if err != nil {
		return err
	}
	connect := s.servers.Present()
	at := s.cutter.place.String() // the reading goroutine has the cutter from openStream on
	s.mu.Lock()
	s.status.Server = answer.Server
	s.mu.Unlock()
	s.opts.changed(resume.Server, answer.Server)
	s.cutter.reads(answer.Server)
	s.cutter.schemas.connected(answer.Server, connect)
	if mayChooseID && !sameServer(answer.Server, resume.Server) { // the number may be taken there
		if s.opts.ServerID, err = chooseServerID(s.ctx, connect); err != nil {
			return err
		}
	}
	connecting, cancel := context.WithTimeout(s.ctx, connect.timeout())
	defer cancel()
	stream, err := openStream(connecting, streamOptions{
		connect: connect, flavor: answer.Server.Flavor, serverID: s.opts.ServerID, heartbeat: s.opts.Heartbeat,
		handle: s.handle, read: &s.bytesRead, heard: &s.heard,
	}, resume.Position)
	if err != nil {
		return explainStream(err)
	}
	stop := context.AfterFunc(s.ctx, stream.cut)
	defer stop()
	s.opts.Logger.Info("reading the binlog", "server", connect.Address, "version", answer.Server.Version, "server_id", s.opts.ServerID, "from", at)
	err = stream.wait(s.ctx)
	stream.close()
	return explainStream(err)
}

// resume is where reading stands, and what the server to go on with must have.
func (s *Source) resume() Resume {
	c := s.cutter
	r := Resume{
		Position: Position{File: c.place.file, Offset: c.place.offset}, Held: c.xa.missing, Published: s.opts.From.Published,
		Inside: c.unfinished(), Server: s.Server(), ReadAt: s.opts.From.ReadAt,
	}
	if c.read != nil {
		r.Position = Position{GTIDs: c.read.Clone(), File: c.told.file, Offset: c.told.offset}
	}
	if !c.toldAt.IsZero() {
		r.ReadAt = c.toldAt
	}
	return r
}

// changed counts, and tells operators, that reading goes on with another server.
func (o *SourceOptions) changed(before, now Identity) {
	if before.Version == "" || sameServer(before, now) {
		return
	}
	o.Servers.failedOver()
	o.Logger.Warn("failover: going on with another server, which has all transactions that were read", "server", o.Servers.Present().Address,
		"uuid", now.UUID, "server_id", now.ServerID, "version", now.Version, "before_uuid", before.UUID, "before_server_id", before.ServerID)
}

// handle takes one event of the stream.
func (s *Source) handle(e rawEvent) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if err := s.cutter.event(e); err != nil {
		return err
	}
	if s.ended {
		return errScanned
	}
	if len(s.cutter.xa.held) > 0 {
		s.xaWatch.look(time.Now(), s)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Connected, s.status.LastError = true, ""
	s.status.CaughtUp = e.isHeartbeat()
	if s.cutter.open == nil {
		s.status.Read.File, s.status.Read.Offset = s.cutter.place.file, s.cutter.place.offset
	}
	return nil
}

// lost notes that the connection ended.
func (s *Source) lost(err error, delay time.Duration) {
	s.mu.Lock()
	s.status.Connected = false
	s.status.LastError = err.Error()
	s.status.Reconnects++
	s.mu.Unlock()
	s.opts.Logger.Warn("lost the connection to the source; connecting again", "error", err, "wait", delay, "resume", s.cutter.place.String())
}

func (s *Source) fail(err error) {
	s.mu.Lock()
	s.failed = err
	s.status.Connected = false
	if s.ctx.Err() == nil && !errors.Is(err, ErrReached) {
		s.status.LastError = err.Error()
	}
	s.mu.Unlock()
	signal(s.ready)
}

func endsTheRun(err error) bool {
	var config *ConfigError
	var source *SourceError
	var history *historyError
	return errors.As(err, &config) || errors.As(err, &source) || errors.As(err, &history)
}

// sleep waits, and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
