package fetch

import "context"

// Redis is Redis 7.0, of Debian 12; the server is usr/bin/redis-server.
func Redis(ctx context.Context) (Tree, error) {
	return debianTree(ctx, "redis-7.0", "bookworm", "redis-server")
}
