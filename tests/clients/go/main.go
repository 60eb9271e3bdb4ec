// The official Go SDK as a client: client URL MODE STEPS, as python_client.py says.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const cancelAfter = 1500 * time.Millisecond

type authorized struct{}

func (authorized) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer client")
	return http.DefaultTransport.RoundTrip(request)
}

func say(value any) {
	line, _ := json.Marshal(value)
	fmt.Println(string(line))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func take(session *mcp.ClientSession, action, tool string, arguments any) (any, error) {
	ctx := context.Background()
	if action == "list" {
		names := []string{}
		for tool, err := range session.Tools(ctx, nil) {
			if err != nil {
				return nil, err
			}
			names = append(names, tool.Name)
		}
		return map[string]any{"tools": names}, nil
	}
	if action == "wait" {
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return map[string]any{"line": strings.TrimSpace(line)}, err
	}
	if action == "cancel" {
		limited, stop := context.WithTimeout(ctx, cancelAfter)
		defer stop()
		ctx = limited
	}
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	if action == "progress" {
		params.SetProgressToken("progress")
	}
	result, err := session.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	text := result.Content[0].(*mcp.TextContent).Text
	return map[string]any{"text": text, "isError": result.IsError}, nil
}

func main() {
	url, mode := os.Args[1], os.Args[2]
	var steps [][]any
	if err := json.Unmarshal([]byte(os.Args[3]), &steps); err != nil {
		fail(err)
	}
	heard := make(chan [2]float64, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "go-client", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			heard <- [2]float64{request.Params.Progress, request.Params.Total}
		},
	})
	options := &mcp.ClientSessionOptions{}
	if mode == "legacy" {
		options.ProtocolVersion = "2025-11-25"
	} else if mode != "auto" {
		options.ProtocolVersion = mode
	}
	session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: authorized{}}}, options)
	if err != nil {
		fail(err)
	}
	defer session.Close()
	say(map[string]any{"version": session.InitializeResult().ProtocolVersion})
	for _, step := range steps {
		words := append(step, "", map[string]any{})
		tool, arguments := "", any(map[string]any{})
		if len(step) > 2 {
			tool, arguments = words[1].(string), words[2]
		}
		outcome, err := take(session, step[0].(string), tool, arguments)
		var wire *jsonrpc.Error
		if errors.As(err, &wire) {
			outcome = map[string]any{"error": map[string]any{"code": wire.Code, "message": wire.Message}}
		} else if err != nil {
			outcome = map[string]any{"failure": err.Error()}
		}
		say(outcome)
	}
	progress := [][2]float64{}
	for len(heard) > 0 {
		progress = append(progress, <-heard)
	}
	say(map[string]any{"progress": progress})
}
