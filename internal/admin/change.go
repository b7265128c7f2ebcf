package admin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"
)

// MoveRequest is the body of POST /checkpoint/move.
type MoveRequest struct {
	Action string `json:"action"`
	Reason string `json:"reason"`
	By     Person `json:"by"`
	// Record is the checkpoint to be, as the file store keeps it.
	Record string `json:"record"`
	// Forward: the record's schema history is to be used as it says, and not that of the place that the daemon has.
	Forward bool `json:"forward"`
}

// Person is who asks for a change.
type Person struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	User  string    `json:"user,omitempty"`
	Since time.Time `json:"since"`
}

// MoveAnswer is the answer.
type MoveAnswer struct {
	Entry string `json:"entry"` // of the checkpoint's history
}

// maxRequest bounds the body of a request that changes something: a checkpoint of a set of many intervals fits.
const maxRequest = 16 << 20

// changing guards a handler that changes something: it takes requests of this machine that bring the token, and no others.
func changing(token string, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			http.Error(w, "changes are taken from this machine only", http.StatusForbidden)
			return
		}
		if token == "" {
			http.Error(w, "changes are off: set admin.token in the configuration", http.StatusForbidden)
			return
		}
		given, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !isBearer || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this needs the configuration's admin.token", http.StatusUnauthorized)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
		handle(w, r)
	}
}

// moveHandler answers POST /checkpoint/move.
func moveHandler(move func(context.Context, MoveRequest) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request MoveRequest
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		if err := d.Decode(&request); err != nil {
			http.Error(w, "read the request: "+err.Error(), http.StatusBadRequest)
			return
		}
		// The daemon may take longer to come to rest than answers usually may.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * time.Minute)) // then the usual time is what there is
		entry, err := move(r.Context(), request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		writeJSON(w, http.StatusOK, MoveAnswer{Entry: entry})
	}
}

// ReloadAnswer is the answer of POST /reload.
type ReloadAnswer struct {
	Result string `json:"result"`
}

// reloadHandler answers POST /reload: 409 and the reason where the rules before stay.
func reloadHandler(reload func(context.Context) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// As for a move.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * time.Minute))
		result, err := reload(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		writeJSON(w, http.StatusOK, ReloadAnswer{Result: result})
	}
}
