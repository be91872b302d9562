// Two records written and read, or records written for some seconds, by franz-go: one JSON object in, one out.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type task struct {
	Seed      string
	Topic     string
	Authority string // a PEM file; empty: no TLS
	Pair      string // a PEM file with key and certificate; empty: none
	Mechanism string // empty: no SASL
	User      string
	Password  string // of the user, or of a delegation token
	Token     bool   // whether User and Password are those of a delegation token
	Bearer    string
	Records   [][]byte
	Seconds   float64 // how long to write; 0: write and read Records
}

type result struct {
	Offsets []int64
	Values  [][]byte
}

func mechanism(t task) (sasl.Mechanism, error) {
	login := scram.Auth{User: t.User, Pass: t.Password, IsToken: t.Token}
	switch t.Mechanism {
	case "PLAIN":
		return plain.Auth{User: t.User, Pass: t.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return login.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return login.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		return oauth.Auth{Token: t.Bearer}.AsMechanism(), nil
	}
	return nil, fmt.Errorf("no mechanism %s", t.Mechanism)
}

func secured(t task) (*tls.Config, error) {
	text, err := os.ReadFile(t.Authority)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("no certificate in " + t.Authority)
	}
	if t.Pair != "" {
		pair, err := tls.LoadX509KeyPair(t.Pair, t.Pair)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func options(t task) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(t.Seed),
		kgo.ConsumeTopics(t.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if t.Authority != "" {
		config, err := secured(t)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	if t.Mechanism != "" {
		login, err := mechanism(t)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(login))
	}
	return opts, nil
}

func run(ctx context.Context, t task) (found result, err error) {
	opts, err := options(t)
	if err != nil {
		return found, err
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return found, err
	}
	defer client.Close()
	write := func(value []byte) error {
		record, err := client.ProduceSync(ctx, &kgo.Record{Topic: t.Topic, Value: value}).First()
		if err == nil {
			found.Offsets = append(found.Offsets, record.Offset)
		}
		return err
	}
	for end := time.Now().Add(time.Duration(t.Seconds * float64(time.Second))); time.Now().Before(end); {
		if err := write([]byte("v")); err != nil {
			return found, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, value := range t.Records {
		if err := write(value); err != nil {
			return found, err
		}
	}
	for len(found.Values) < len(t.Records) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return found, err
		}
		fetches.EachRecord(func(record *kgo.Record) { found.Values = append(found.Values, record.Value) })
	}
	return found, nil
}

func main() {
	var t task
	err := json.NewDecoder(os.Stdin).Decode(&t)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		defer cancel()
		var found result
		if found, err = run(ctx, t); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(found)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
