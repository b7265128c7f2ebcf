package main

import (
	"context"
	"fmt"

	"github.com/binlogd/binlogd/canal"
)

// checkAgainst looks whether a switch from the present server to the one at an address would be safe. The result is a report as of
// check: its exit code is 0 only if reading could go on there from the checkpoint.
func (a *app) checkAgainst(ctx context.Context, cfg *config, address string, output outputFormat) error {
	other := cfg.Source.At(address)
	if err := other.Validate(); err != nil {
		return &usageError{fmt.Errorf("--against: write host:port: %w", err)}
	}
	record, checks := checkCheckpoint(ctx, cfg)
	if failures(checks) == nil {
		if record == nil {
			checks = append(checks, canal.Check{
				Name: "place", Status: canal.CheckWarn, Detail: "there is no checkpoint yet: only the servers are compared",
				Remedy: "ask again once binlogd runs",
			})
		}
		options := canal.PreflightOptions{}
		if record != nil {
			options = canal.PreflightAt(record.Resume())
		}
		checks = append(checks, compareServers(ctx, cfg.Source.reach(ctx, record), other, options)...)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("check was interrupted: %w", err)
	}
	return a.report(newCheckReport(checks, "a switch to "+address+" would be safe", "a switch to "+address+" would not be safe"), output)
}

func compareServers(ctx context.Context, here, other canal.ConnectOptions, options canal.PreflightOptions) []canal.Check {
	there, err := canal.Inspect(ctx, other)
	if err != nil {
		return []canal.Check{unavailableSource(canal.FailedCheck("connection", err))}
	}
	defer func() { _ = there.Close() }()
	var present *canal.Inspector
	if here.Address != other.Address {
		if present, err = canal.Inspect(ctx, here); err == nil {
			defer func() { _ = present.Close() }()
		}
	}
	checks := there.Against(ctx, present, options)
	for i := range checks {
		checks[i] = unavailableSource(checks[i])
	}
	return checks
}
