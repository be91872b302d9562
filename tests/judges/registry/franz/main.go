// Every call of franz-go's package sr against a registry whose URL is the argument: one line of JSON for each, with the
// result, or the error's code.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

type line struct {
	Call  string `json:"call"`
	Value any    `json:"value,omitempty"`
	Code  int    `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

var out = json.NewEncoder(os.Stdout)

func say(call string, value any, err error) {
	found := line{Call: call, Value: value}
	var refused *sr.ResponseError
	if errors.As(err, &refused) {
		found = line{Call: call, Code: refused.ErrorCode}
	} else if err != nil {
		found = line{Call: call, Error: err.Error()}
	}
	if err := out.Encode(found); err != nil {
		panic(err)
	}
}

func schemas(client *sr.Client, ctx context.Context) {
	avro := sr.Schema{Schema: `"int"`}
	wider := sr.Schema{Schema: `"long"`}
	first, err := client.CreateSchema(ctx, "s", avro)
	say("CreateSchema", first, err)
	id, err := client.RegisterSchema(ctx, "s", wider, -1, -1)
	say("RegisterSchema", id, err)
	_, err = client.RegisterSchema(ctx, "s", sr.Schema{Schema: `"string"`}, -1, -1)
	say("RegisterSchema, incompatible", nil, err)
	_, err = client.RegisterSchema(ctx, "s", sr.Schema{Schema: `"none"`}, -1, -1)
	say("RegisterSchema, invalid", nil, err)
	found, err := client.LookupSchema(ctx, "s", avro)
	say("LookupSchema", found, err)
	_, err = client.LookupSchema(ctx, "none", avro)
	say("LookupSchema, no subject", nil, err)
	byID, err := client.SchemaByID(ctx, first.ID)
	say("SchemaByID", byID, err)
	_, err = client.SchemaByID(ctx, 9999)
	say("SchemaByID, none", nil, err)
	byGUID, err := client.SchemaByGUID(ctx, first.GUID)
	say("SchemaByGUID", byGUID, err)
	ids, err := client.SchemaIDsByGUID(ctx, first.GUID)
	say("SchemaIDsByGUID", ids, err)
	text, err := client.SchemaTextByID(ctx, first.ID)
	say("SchemaTextByID", text, err)
	subjects, err := client.SubjectsByID(ctx, first.ID)
	say("SubjectsByID", subjects, err)
	versions, err := client.SchemaVersionsByID(ctx, first.ID)
	say("SchemaVersionsByID", versions, err)
	numbers, err := client.SubjectVersions(ctx, "s")
	say("SubjectVersions", numbers, err)
	latest, err := client.SchemaByVersion(ctx, "s", -1)
	say("SchemaByVersion", latest, err)
	text, err = client.SchemaTextByVersion(ctx, "s", 1)
	say("SchemaTextByVersion", text, err)
	all, err := client.AllSchemas(ctx)
	say("AllSchemas", all, err)
	all, err = client.Schemas(ctx, "s")
	say("Schemas", all, err)
	types, err := client.SupportedTypes(ctx)
	say("SupportedTypes", types, err)
	reference := sr.SchemaReference{Name: "F", Subject: "f", Version: 1}
	_, err = client.CreateSchema(ctx, "f", sr.Schema{Schema: `{"type":"fixed","name":"F","size":2}`})
	say("CreateSchema, referred to", nil, err)
	_, err = client.CreateSchema(ctx, "g", sr.Schema{Schema: `{"type":"array","items":"F"}`, References: []sr.SchemaReference{reference}})
	say("CreateSchema, with a reference", nil, err)
	users, err := client.SchemaReferences(ctx, "f", 1)
	say("SchemaReferences", users, err)
	uses, err := client.SchemaUsagesByID(ctx, first.ID)
	say("SchemaUsagesByID", uses, err)
	_, err = client.CreateSchema(ctx, "p", sr.Schema{Type: sr.TypeProtobuf, Schema: "syntax = \"proto3\"; message M { int32 a = 1; }"})
	say("CreateSchema, Protobuf", nil, err)
	_, err = client.CreateSchema(ctx, "j", sr.Schema{Type: sr.TypeJSON, Schema: `{"type":"integer"}`})
	say("CreateSchema, JSON", nil, err)
	names, err := client.Subjects(sr.WithParams(ctx, sr.SubjectPrefix(":*:")))
	say("Subjects", names, err)
	contexts, err := client.Contexts(ctx)
	say("Contexts", contexts, err)
}

func settings(client *sr.Client, ctx context.Context) {
	for _, each := range client.Compatibility(ctx, "", "s") {
		say("Compatibility of '"+each.Subject+"'", each.Level.String(), each.Err)
	}
	for _, each := range client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, "s") {
		say("SetCompatibility", each.Level.String(), each.Err)
	}
	verdict, err := client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "s", -1, sr.Schema{Schema: `"string"`})
	say("CheckCompatibility", map[string]any{"is": verdict.Is, "explained": len(verdict.Messages) > 0}, err)
	verdict, err = client.CheckCompatibility(ctx, "s", -2, sr.Schema{Schema: `"long"`})
	say("CheckCompatibility, all", verdict.Is, err)
	for _, each := range client.ResetCompatibility(ctx, "s") {
		say("ResetCompatibility", each.Level.String(), each.Err)
	}
	for _, each := range client.SetMode(ctx, sr.ModeReadOnly, "s") {
		say("SetMode", each.Mode.String(), each.Err)
	}
	_, err = client.CreateSchema(ctx, "s", sr.Schema{Schema: `"bytes"`})
	say("CreateSchema, read only", nil, err)
	for _, each := range client.Mode(ctx, "s", "g") {
		say("Mode of '"+each.Subject+"'", each.Mode.String(), each.Err)
	}
	for _, each := range client.ResetMode(ctx, "s") {
		say("ResetMode", each.Mode.String(), each.Err)
	}
	for _, each := range client.SetMode(ctx, sr.ModeImport, "i") {
		say("SetMode, import", each.Mode.String(), each.Err)
	}
	found, err := client.CreateSchemaWithIDAndVersion(ctx, "i", sr.Schema{Schema: `"double"`}, 77, 5)
	say("CreateSchemaWithIDAndVersion", map[string]int{"id": found.ID, "version": found.Version}, err)
}

func deleting(client *sr.Client, ctx context.Context) {
	say("DeleteSchema, referred to", nil, client.DeleteSchema(ctx, "f", 1, sr.SoftDelete))
	say("DeleteSchema, for good at once", nil, client.DeleteSchema(ctx, "s", 1, sr.HardDelete))
	say("DeleteSchema", nil, client.DeleteSchema(ctx, "s", 1, sr.SoftDelete))
	say("DeleteSchema, again", nil, client.DeleteSchema(ctx, "s", 1, sr.SoftDelete))
	say("DeleteSchema, for good", nil, client.DeleteSchema(ctx, "s", 1, sr.HardDelete))
	numbers, err := client.DeleteSubject(ctx, "s", sr.SoftDelete)
	say("DeleteSubject", numbers, err)
	_, err = client.DeleteSubject(ctx, "s", sr.SoftDelete)
	say("DeleteSubject, again", nil, err)
	numbers, err = client.DeleteSubject(ctx, "s", sr.HardDelete)
	say("DeleteSubject, for good", numbers, err)
	// CreateSchema asks for the id in the client's own context afterwards, so it is of no use for another one.
	id, err := client.RegisterSchema(ctx, ":.c:s", sr.Schema{Schema: `"int"`}, -1, -1)
	say("RegisterSchema, in a context", id, err)
	say("DeleteContext, not empty", nil, client.DeleteContext(ctx, ".c"))
	_, _ = client.DeleteSubject(ctx, ":.c:s", sr.SoftDelete)
	_, _ = client.DeleteSubject(ctx, ":.c:s", sr.HardDelete)
	say("DeleteContext", nil, client.DeleteContext(ctx, ".c"))
}

func contexts(url string, ctx context.Context) {
	client, err := sr.NewClient(sr.URLs(url), sr.DefaultSchemaContext(".d"))
	if err != nil {
		panic(err)
	}
	found, err := client.CreateSchema(ctx, "s", sr.Schema{Schema: `"int"`})
	say("CreateSchema, in the client's context", found, err)
	text, err := client.SchemaTextByID(ctx, found.ID)
	say("SchemaTextByID, in the client's context", text, err)
	// The client compares subjects with the name that it was given, so without a dot it finds no subject for CreateSchema.
	bare := sr.InContext(ctx, "e")
	id, err := client.RegisterSchema(bare, "s", sr.Schema{Schema: `"long"`}, -1, -1)
	say("RegisterSchema, in a context without its dot", id, err)
	names, err := client.Subjects(bare)
	say("Subjects, in a context without its dot", names, err)
}

func main() {
	client, err := sr.NewClient(sr.URLs(os.Args[1]))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	schemas(client, ctx)
	settings(client, ctx)
	deleting(client, ctx)
	contexts(os.Args[1], ctx)
}
