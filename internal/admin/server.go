package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options configure a Server.
type Options struct {
	// Listen is admin.listen of the configuration, host:port; empty turns the server off.
	Listen string
	// Snapshot is asked at every request, also by several at once.
	Snapshot func() Snapshot
	// DeadAfter is how long the source may be disconnected, and not heard of, before
	// /healthz says 503; 0 means 30 s.
	DeadAfter time.Duration
	// Reload reads the rules anew; its answer says what became of it.
	Reload func(context.Context) (string, error)
	// Token is what requests that change something must bring; without one they are refused.
	Token string
	// Move moves the checkpoint and gives the history's entry; nil where there is none to move.
	Move   func(context.Context, MoveRequest) (entry string, err error)
	Logger *slog.Logger
}

const (
	defaultDeadAfter = 30 * time.Second

	headerTimeout   = 5 * time.Second
	readTimeout     = 10 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = time.Minute
	shutdownTimeout = 3 * time.Second
	maxHeaderBytes  = 16 << 10
)

// ListenError says that admin.listen cannot be listened on.
type ListenError struct {
	Listen string // as configured
	Err    error
}

func (e *ListenError) Error() string {
	return fmt.Sprintf("admin.listen: listen on %s: %v; %s", e.Listen, e.Err, e.remedy())
}

func (e *ListenError) Unwrap() error { return e.Err }

func (e *ListenError) remedy() string {
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE):
		return "another process, perhaps another binlogd, has the port: stop it, set admin.listen to another port, or leave admin.listen empty to do without"
	case errors.Is(e.Err, syscall.EACCES):
		return "set admin.listen to a port from 1024 on"
	case errors.Is(e.Err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address: set admin.listen to one of its own, such as 127.0.0.1:9808"
	}
	return "set admin.listen to host:port, such as 127.0.0.1:9808"
}

// Server answers /healthz, /readyz, /metrics and /status, and takes changes from who has the token.
type Server struct {
	listener net.Listener // nil when off
	http     *http.Server
}

// Listen takes the port, so that a mistake shows before anything else starts. The error is a
// *ListenError. The server must be served, or closed.
func Listen(ctx context.Context, o Options) (*Server, error) {
	if o.Listen == "" {
		return &Server{}, nil
	}
	if o.DeadAfter <= 0 {
		o.DeadAfter = defaultDeadAfter
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, &ListenError{Listen: o.Listen, Err: cause(err)}
	}
	return &Server{listener: listener, http: &http.Server{
		Handler:           newHandler(o),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}}, nil
}

// cause takes the address off an error of net, which ListenError names itself.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// Address is where the server listens, host:port; "" when it is off.
func (s *Server) Address() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Serve answers until ctx ends, which is no error, and then lets requests that are being
// answered end within three seconds. When off it only waits.
func (s *Server) Serve(ctx context.Context) error {
	if s.listener == nil {
		<-ctx.Done()
		return nil
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve admin.listen at %s: %w", s.Address(), err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := s.http.Shutdown(closing); err != nil {
		_ = s.http.Close() // whoever still reads has had the time
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve admin.listen at %s: %w", s.Address(), err)
	}
	return nil
}

// Close gives the port up. A server that was served needs none.
func (s *Server) Close() error {
	if s.listener == nil {
		return nil
	}
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close admin.listen: %w", err)
	}
	return nil
}

func newHandler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer := checkHealth(o.Snapshot(), time.Now(), o.DeadAfter)
		writeJSON(w, statusOf(answer.Healthy), answer)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		answer := checkReadiness(o.Snapshot())
		writeJSON(w, statusOf(answer.Ready), answer)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, o.Snapshot())
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(newRegistry(o.Snapshot), promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}))
	if o.Move != nil {
		mux.HandleFunc("POST /checkpoint/move", changing(o.Token, moveHandler(o.Move)))
	}
	if o.Reload != nil {
		mux.HandleFunc("POST /reload", changing(o.Token, reloadHandler(o.Reload)))
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Join([]string{"binlogd", "/healthz", "/readyz", "/metrics", "/status", ""}, "\n"))
	})
	return mux
}

func statusOf(good bool) int {
	if good {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	body, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // whoever asked may be gone
}
