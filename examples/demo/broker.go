package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/IBM/sarama"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// startBroker fetches Kafka or Redis, if it is not in the cache, and starts one of the
// demo's own with its data in dir. It dies with the demo. address is host:port.
func startBroker(ctx context.Context, kind, dir string) (process *daemon.Process, address string, err error) {
	port, release, err := daemon.ReservePort()
	if err != nil {
		return nil, "", err
	}
	defer release()
	var spec daemon.Spec
	if kind == "kafka" {
		spec, err = prepareKafka(ctx, filepath.Join(dir, "kafka"), port)
	} else {
		spec, err = prepareRedis(ctx, filepath.Join(dir, "redis"), port)
	}
	if err != nil {
		return nil, "", err
	}
	process, err = daemon.Start(ctx, spec)
	return process, daemon.Address(port), err
}

func prepareKafka(ctx context.Context, dir string, port int) (daemon.Spec, error) {
	software, err := fetch.KafkaServer(ctx)
	if err != nil {
		return daemon.Spec{}, fmt.Errorf("get Kafka: %w", err)
	}
	controller, release, err := daemon.ReservePort()
	if err != nil {
		return daemon.Spec{}, err
	}
	defer release()
	node := daemon.KafkaNode{ID: 1, Port: port, Controller: controller, Dir: dir}
	if err := daemon.NewKafka(ctx, software, []daemon.KafkaNode{node}, nil); err != nil {
		return daemon.Spec{}, err
	}
	spec := daemon.Kafka(software, node, 1)
	listening := spec.Ready
	spec.Ready = func(ctx context.Context) error {
		if err := listening(ctx); err != nil {
			return err
		}
		return takesProducers(daemon.Address(port))
	}
	return spec, nil
}

// takesProducers returns nil once a Kafka that has just started hands out producer ids,
// which it does some moments after it has begun to listen.
func takesProducers(address string) error {
	config := sarama.NewConfig()
	config.Version = sarama.V2_4_0_0
	broker := sarama.NewBroker(address)
	if err := broker.Open(config); err != nil {
		return err
	}
	defer broker.Close()
	answer, err := broker.InitProducerID(&sarama.InitProducerIDRequest{Version: 1})
	if err != nil {
		return err
	}
	if answer.Err != sarama.ErrNoError {
		return answer.Err
	}
	return nil
}

func prepareRedis(ctx context.Context, dir string, port int) (daemon.Spec, error) {
	software, err := fetch.Redis(ctx)
	if err != nil {
		return daemon.Spec{}, fmt.Errorf("get Redis: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return daemon.Spec{}, fmt.Errorf("make Redis's folder: %w", err)
	}
	return daemon.Redis(software, dir, port)
}
