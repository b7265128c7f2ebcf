package main

import (
	"context"
	"fmt"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

// resumeOf is where a run would go on; record is nil where there is no checkpoint.
func resumeOf(record *checkpoint.Record) canal.Resume {
	if record == nil {
		return canal.Resume{}
	}
	return record.Resume()
}

// checkAddresses asks all servers of source.addresses whether they could serve the checkpoint, and gives the way to the one
// that a run would begin with. There is nothing to say where only one is configured.
func checkAddresses(ctx context.Context, cfg *config, record *checkpoint.Record) ([]canal.Check, canal.ConnectOptions) {
	servers := canal.NewServers(cfg.Source.ConnectOptions)
	if len(servers.Addresses()) == 1 {
		return nil, servers.Present()
	}
	from := resumeOf(record)
	answers := servers.Answers(ctx, from)
	best, err := servers.Best(answers, from)
	checks := make([]canal.Check, 0, len(answers)+1)
	for _, a := range answers {
		checks = append(checks, checkAnswer(a, a.Address == best.Address))
	}
	if err != nil {
		return append(checks, unavailableSource(canal.FailedCheck("addresses", err))), servers.Present()
	}
	return checks, cfg.Source.At(best.Address)
}

// checkAnswer is a line about one of several addresses. That one cannot serve the checkpoint is no failure as long as another can.
func checkAnswer(a canal.Answer, chosen bool) canal.Check {
	c := canal.Check{Name: "address " + a.Address, Status: canal.CheckOK}
	who := fmt.Sprintf("%s %s, server id %d", a.Server.Flavor, a.Server.Version, a.Server.ServerID)
	if a.Server.UUID != "" {
		who += ", UUID " + a.Server.UUID
	}
	switch {
	case a.Err != nil:
		failed := canal.FailedCheck(c.Name, a.Err)
		c.Status, c.Detail, c.Remedy = canal.CheckWarn, "it could not take over now: "+failed.Detail, failed.Remedy
	case chosen:
		c.Detail = "a run begins here: " + who
	default:
		c.Detail = "it could take over: " + who
	}
	return c
}

// reach is the way to the server that a run would go on with from a record; where none could, to the first that answers.
func (c sourceConfig) reach(ctx context.Context, record *checkpoint.Record) canal.ConnectOptions {
	servers := canal.NewServers(c.ConnectOptions)
	if len(servers.Addresses()) == 1 {
		return servers.Present()
	}
	from := resumeOf(record)
	answers := servers.Answers(ctx, from)
	if best, err := servers.Best(answers, from); err == nil {
		return c.At(best.Address)
	}
	for _, a := range answers {
		if a.Server.Version != "" {
			return c.At(a.Address)
		}
	}
	return servers.Present()
}
