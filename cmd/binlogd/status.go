package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/internal/admin"
)

// statusTimeout bounds the question to the daemon.
const statusTimeout = 5 * time.Second

func (a *app) statusCommand() *cobra.Command {
	var output outputFormat
	var address string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what the running daemon reports of itself",
		Long: `Asks the admin server of a running binlogd (admin.listen) and shows its position, lag
and totals. The exit code is 0 if it answers and both its ends are connected, else 1:
fit for a container's health check.`,
		Example: `  binlogd status -c binlogd.yaml
  binlogd status --address 127.0.0.1:9808 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address == "" {
				cfg, err := a.config()
				if err != nil {
					return err
				}
				if address = cfg.Admin.Listen; address == "" {
					return &usageError{errors.New("the configuration has no admin.listen: set it, such as 127.0.0.1:9808, and restart binlogd")}
				}
			}
			return a.showStatus(cmd.Context(), address, output)
		},
	}
	a.addConfigFlag(cmd)
	addOutputFlag(cmd, &output)
	cmd.Flags().StringVar(&address, "address", "", "host:port of the admin server, instead of the configuration's")
	return cmd
}

func (a *app) showStatus(ctx context.Context, address string, output outputFormat) error {
	text, err := askStatus(ctx, address)
	if err != nil {
		return fmt.Errorf("ask the daemon at %s: %w; is it running, and with this admin.listen?", address, err)
	}
	var s admin.Snapshot
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("read the answer of %s: %w; is it a binlogd?", address, err)
	}
	if output == outputJSON {
		_, err = a.stdout.Write(text)
	} else {
		err = writeStatus(a.stdout, s)
	}
	if err != nil {
		return err
	}
	if !s.Source.Connected || !s.Sink.Connected {
		return &reportedError{exitUnexpected}
	}
	return nil
}

func askStatus(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	address, err := reachable(address)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/status", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s", response.Status)
	}
	return text, err
}

// reachable is where to ask a server that listens on an address.
func reachable(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() { // where it listens is not where to ask
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

func writeStatus(w io.Writer, s admin.Snapshot) error {
	lag := "unknown"
	switch {
	case s.LagTransactions >= 0:
		lag = fmt.Sprintf("%d transactions, %s", s.LagTransactions, seconds(s.LagSeconds))
	case s.LagSeconds >= 0:
		lag = seconds(s.LagSeconds)
	}
	saved := "not yet"
	if !s.CheckpointAt.IsZero() {
		saved = s.CheckpointAt.UTC().Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(w, `name         %s
running      since %s, version %s
source       %s, %s %s: %s
sink         %s: %s
position     %s
lag          %s
in flight    %d bytes
checkpoint   saved %s
published    %d events, %d bytes, of %d transactions
`, s.Name, s.StartedAt.UTC().Format(time.RFC3339), s.Version,
		s.Source.Address, s.Source.Flavor, s.Source.Version, connection(s.Source.Connected, s.Source.LastError),
		s.Sink.Kind, connection(s.Sink.Connected, s.Sink.LastError),
		s.Position, lag, s.InFlightBytes, saved, s.Events, s.Bytes, s.Transactions)
	if err == nil && s.LastError != "" {
		_, err = fmt.Fprintf(w, "last error   %s\n", s.LastError)
	}
	return err
}

func connection(connected bool, lastError string) string {
	switch {
	case connected:
		return "connected"
	case lastError != "":
		return "away: " + lastError
	}
	return "not connected yet"
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond).String()
}
