// The receiver of OpenTelemetry's collector, as the collector runs it: what it takes by OTLP over HTTP is written to standard
// output, a line of JSON for each batch. Usage: collector HOST:PORT
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func write(_ context.Context, traces ptrace.Traces) error {
	line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
	if err == nil {
		fmt.Printf("%s\n", line)
	}
	return err
}

func start(ctx context.Context, endpoint string) (receiver.Traces, error) {
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	wanted := map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": endpoint}}}
	if err := confmap.NewFromStringMap(wanted).Unmarshal(config); err != nil {
		return nil, err
	}
	next, err := consumer.NewTraces(write)
	if err != nil {
		return nil, err
	}
	settings := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	traces, err := factory.CreateTraces(ctx, settings, config, next)
	if err != nil {
		return nil, err
	}
	return traces, traces.Start(ctx, componenttest.NewNopHost())
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: collector HOST:PORT")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	traces, err := start(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening")
	<-ctx.Done()
	if err := traces.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
}
