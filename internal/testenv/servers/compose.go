package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// dockerAnswers reports whether there is a Docker engine with the compose plugin.
func dockerAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "docker", "info").Run() == nil &&
		exec.CommandContext(ctx, "docker", "compose", "version").Run() == nil
}

// compose runs docker compose with the repository's docker-compose.yml.
func compose(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "docker", append([]string{"compose"}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run docker compose: %w; run it in the repository's top folder, or go without containers: servers up -local", err)
	}
	return nil
}
