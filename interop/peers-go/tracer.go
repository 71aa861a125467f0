package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// tracer watches all connections: it counts what the report needs, and passes everything on to
// quic-go's own qlog writer if a directory was given.
type tracer struct {
	mutex      sync.Mutex
	keyUpdates int
	ecn        string
	logs       bool
}

func newTracer(directory string) *tracer {
	if directory != "" {
		// quic-go's writer takes the directory from here only.
		os.Setenv("QLOGDIR", directory)
	}
	return &tracer{ecn: "unused", logs: directory != ""}
}

func (t *tracer) connection(ctx context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
	traced := &trace{tracer: t}
	if t.logs {
		traced.inner = qlog.DefaultConnectionTracer(ctx, isClient, id)
	}
	return traced
}

// counts are the key updates that this side began, and the last state of ECN.
func (t *tracer) counts() (keyUpdates int, ecn string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.keyUpdates, t.ecn
}

func (t *tracer) observe(event qlogwriter.Event) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch seen := event.(type) {
	case qlog.KeyUpdated:
		// Each update is told once for each direction.
		if seen.Trigger == qlog.KeyUpdateLocal && seen.KeyType == qlog.KeyTypeClient1RTT {
			t.keyUpdates++
			fmt.Fprintln(os.Stderr, "key update", t.keyUpdates)
		}
	case qlog.ECNStateUpdated:
		t.ecn = string(seen.State)
	}
}

// trace is one connection's.
type trace struct {
	tracer *tracer
	inner  qlogwriter.Trace
}

func (t *trace) AddProducer() qlogwriter.Recorder {
	made := &recorder{tracer: t.tracer}
	if t.inner != nil {
		made.inner = t.inner.AddProducer()
	}
	return made
}

type recorder struct {
	tracer *tracer
	inner  qlogwriter.Recorder
}

func (r *recorder) RecordEvent(event qlogwriter.Event) {
	r.tracer.observe(event)
	if r.inner != nil {
		r.inner.RecordEvent(event)
	}
}

func (r *recorder) Close() error {
	if r.inner != nil {
		return r.inner.Close()
	}
	return nil
}
