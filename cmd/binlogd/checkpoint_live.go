package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/admin"
	"github.com/binlogd/binlogd/internal/travel"
)

// moveTimeout bounds a move by the daemon: it publishes first what it has read.
const moveTimeout = time.Minute

// askDaemonToMove has the running daemon carry a plan out.
func askDaemonToMove(ctx context.Context, cfg *config, p *travel.Plan, m checkpoint.Move) (*checkpoint.Entry, error) {
	record, err := checkpoint.Encode(&p.After)
	if err != nil {
		return nil, err
	}
	answer, err := askAdmin(ctx, cfg, "/checkpoint/move", admin.MoveRequest{
		Action: string(m.Action), Reason: m.Reason, By: admin.Person(m.By), Record: string(record), Forward: p.Skipped != nil,
	})
	if err != nil {
		return nil, fmt.Errorf("have the daemon at %s move the checkpoint: %w", cfg.Admin.Listen, err)
	}
	var moved admin.MoveAnswer
	if err := json.Unmarshal(answer, &moved); err != nil {
		return nil, fmt.Errorf("read the answer of the daemon at %s: %w", cfg.Admin.Listen, err)
	}
	return &checkpoint.Entry{ID: moved.Entry}, nil
}

// askAdmin sends a request that changes something to the running daemon, and gives its answer.
func askAdmin(ctx context.Context, cfg *config, path string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	address, err := reachable(cfg.Admin.Listen)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+cfg.Admin.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w; is it running, and with this admin.listen? leave --live out if it is not", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s: %s", response.Status, strings.TrimSpace(string(answer)))
	}
	return answer, err
}
