package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"sync"
	"syscall"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/internal/pipeline"
	"github.com/binlogd/binlogd/mapping"
)

// reloader swaps the rules of a running pipeline for those that the configuration file holds now: events, exclude and
// mask_key. Whatever is wrong with the file, the rules before stay.
type reloader struct {
	app      *app
	pipeline *pipeline.Pipeline
	servers  *canal.Servers
	steering *steering

	cfg *config // that binlogd was started with

	mu sync.Mutex // one reload at a time
}

// onSignal reloads at each SIGHUP until ctx ends, and says in the log what became of it.
func (r *reloader) onSignal(ctx context.Context) {
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	defer signal.Stop(hangUps)
	for {
		select {
		case <-hangUps:
			_, _ = r.reload(ctx) // which logs it
		case <-ctx.Done():
			return
		}
	}
}

// reload reads the configuration file, checks its rules against the server's tables, and has them take over with the next
// transaction. Where other tables are captured, the pipeline comes to rest first and goes on from its checkpoint.
func (r *reloader) reload(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result, err := r.swap(ctx)
	if err != nil {
		err = fmt.Errorf("the rules were not reloaded, those before stay in force: %w", err)
		r.app.logger.Error("reload refused", "error", err)
		return "", err
	}
	r.app.logger.Info("reloaded the rules", "result", result)
	return result, nil
}

func (r *reloader) swap(ctx context.Context) (string, error) {
	if r.app.quick.source != "" {
		return "", errors.New("this run was started with --source, without a configuration file")
	}
	next, err := r.app.config()
	if err != nil {
		return "", err
	}
	if section := r.cfg.otherSection(next); section != "" {
		return "", fmt.Errorf("%s has changed, too: restart binlogd for it, or take the change back; a reload takes over events, exclude and mask_key", section)
	}
	mapper, err := mapping.New(next.mapping())
	if err != nil {
		return "", next.locateAll(err)
	}
	if err := r.check(ctx, next); err != nil {
		return "", err
	}
	if err := r.use(ctx, mapper); err != nil {
		return "", err
	}
	return plural(next.rules(), "rule") + " in force from the next transaction on", nil
}

// use has mapper take over.
func (r *reloader) use(ctx context.Context, mapper *mapping.Mapper) error {
	if r.pipeline.Mapper().SameTables(mapper) {
		r.pipeline.SetMapper(mapper)
		return nil
	}
	_, err := r.steering.turn(ctx, func(context.Context) (string, error) {
		r.pipeline.SetMapper(mapper)
		return "", nil
	})
	return err
}

// check holds the rules against the tables of the server in use.
func (r *reloader) check(ctx context.Context, next *config) error {
	inspector, err := canal.Inspect(ctx, r.servers.Present())
	if err != nil {
		return fmt.Errorf("check the rules against the tables: %w", err)
	}
	defer func() { _ = inspector.Close() }()
	checks, err := checkTables(ctx, next, inspector)
	if err != nil {
		return fmt.Errorf("check the rules against the tables: %w", err)
	}
	return failures(checks)
}

// otherSection names a section beside the rules in which next differs; empty where none does.
func (c *config) otherSection(next *config) string {
	for _, s := range []struct {
		name      string
		mine, its any
	}{
		{"name", c.Name, next.Name},
		{"source", c.Source, next.Source},
		{"checkpoint", c.Checkpoint, next.Checkpoint},
		{"publish", c.Publish, next.Publish},
		{"admin", c.Admin, next.Admin},
		{"limits", c.Limits, next.Limits},
	} {
		if !reflect.DeepEqual(s.mine, s.its) {
			return s.name
		}
	}
	return ""
}

// rules counts the rules; an entry without emit is one.
func (c *config) rules() int {
	n := 0
	for i := range c.Events {
		n += max(1, len(c.Events[i].Emit))
	}
	return n
}
