package quorate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/go/api"
)

// asked is a line as a fake reads it.
type asked struct {
	N  int
	Op struct {
		Op, Key   string
		RequestID string `json:"request_id"`
	}
}

// lined answers each line of the nth request as the handler says; an empty answer ends the stream.
func lined(t *testing.T, answer func(n int, line asked) string) *fake {
	var f *fake
	f = newFake(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		scanner := bufio.NewScanner(strings.NewReader(f.requests()[n-1].body))
		scanner.Buffer(nil, 4<<20)
		for scanner.Scan() {
			var line asked
			if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
				t.Error(err)
			}
			text := answer(n, line)
			if text == "" {
				return
			}
			_, _ = fmt.Fprintln(w, text)
		}
	})
	return f
}

// good is the answer of a write, of whatever key.
func good(n int) string {
	return fmt.Sprintf(`{"n":%d,"status":200,"term":"1","leader":1,"answer":%s}`, n, strings.Replace(writtenText, `"key":"k",`, "", 1))
}

func bad(n string, status int, code api.ErrorCode, retry api.Retry) string {
	return fmt.Sprintf(`{"n":%s,"status":%d,"term":"1","leader":1,"answer":{"type":"/errors/x","title":"t","status":%d,"detail":"d","code":%q,"applied":"no","retry":%q,"request_id":"r"}}`,
		n, status, status, code, retry)
}

func streamed(t *testing.T, c *Client, ops ...Op) []*Streamed {
	t.Helper()
	all := slices.Collect(c.Stream(soon(t, time.Minute), slices.Values(ops)))
	slices.SortFunc(all, func(a, b *Streamed) int { return a.N - b.N })
	return all
}

func TestALineThatWasNotAnsweredIsSentAgainUnderItsID(t *testing.T) {
	ids := map[string]map[string]bool{}
	f := lined(t, func(n int, line asked) string {
		if ids[line.Op.Key] == nil {
			ids[line.Op.Key] = map[string]bool{}
		}
		ids[line.Op.Key][line.Op.RequestID] = true
		switch {
		case n == 1 && line.N == 1:
			return ""
		case n == 2 && line.N == 2:
			return bad("2", 503, api.ErrorCodeNoLeader, api.RetrySameRequestID)
		case line.N == 3:
			return bad("3", 409, api.ErrorCodeCasMismatch, api.RetryAfterReading)
		}
		return good(line.N)
	})
	done := streamed(t, clientOf(t, Options{}, f), OpPut("a", 1, nil), OpPut("b", 1, nil), OpPut("c", 1, nil), OpPut("d", 1, nil))
	if len(done) != 4 || done[0].Err != nil || done[1].Written.Revision != 7 || done[2].Err != nil {
		t.Fatalf("%+v", done)
	}
	// It was open whether the first try of d was done, and the refusal did not go through the log.
	var refusal *Error
	if !errors.As(done[3].Err, &refusal) || refusal.Applied != api.AppliedUnknown || refusal.Code != api.ErrorCodeCasMismatch {
		t.Errorf("%v", done[3].Err)
	}
	for key, of := range ids {
		if len(of) != 1 || of[""] {
			t.Errorf("%s went under %v", key, of)
		}
	}
	if came := f.requests(); len(came) != 3 || came[0].path != "/v1/ops" || came[0].id != "" {
		t.Errorf("%d requests", len(came))
	}
}

func TestAStreamThatNobodyServesIsGivenUp(t *testing.T) {
	f := lined(t, func(int, asked) string { return "" })
	done := streamed(t, clientOf(t, Options{Retry: RetryPolicy{AttemptsMax: 2}}, f), OpPut("a", 1, nil), OpGet("b"), OpPut("", 1, nil))
	if len(done) != 3 || !errors.Is(done[0].Err, ErrUnknownOutcome) || !errors.Is(done[1].Err, ErrUnavailable) || !errors.Is(done[2].Err, ErrInvalidArgument) {
		t.Errorf("%v", done)
	}
	f.end()
	done = streamed(t, clientOf(t, Options{Retry: RetryPolicy{AttemptsMax: 2}}, f), OpPut("a", 1, nil))
	if !errors.Is(done[0].Err, ErrUnavailable) || errors.Is(done[0].Err, ErrUnknownOutcome) {
		t.Errorf("%v", done[0].Err)
	}
}

func TestLinesThatANodeDoesNotTakeAreTold(t *testing.T) {
	f := lined(t, func(int, asked) string { return bad("null", 413, api.ErrorCodeTooLarge, api.RetryNever) })
	c := clientOf(t, Options{}, f)
	if done := streamed(t, c, OpPut("a", 1, nil)); !errors.Is(done[0].Err, ErrTooLarge) {
		t.Errorf("%v", done[0].Err)
	}
	for _, one := range streamed(t, c, OpPut("a", 1, nil), OpPut("b", 1, nil)) {
		if !errors.Is(one.Err, ErrProtocol) || !errors.Is(one.Err, ErrUnknownOutcome) {
			t.Errorf("%v", one.Err)
		}
	}
}

func TestBatchesAreBoundedAndAStreamCanBeLeft(t *testing.T) {
	f := lined(t, func(_ int, line asked) string { return good(line.N) })
	c := clientOf(t, Options{}, f)
	long := strings.Repeat("x", linesBytesMax)
	ops := slices.Repeat([]Op{OpPut("a", 1, nil)}, linesMax+1)
	if done := streamed(t, c, append(ops, OpPut("b", long, nil), OpPut("c", 1, nil))...); len(done) != linesMax+3 || len(f.requests()) != 4 {
		t.Errorf("%d in %d requests", len(done), len(f.requests()))
	}
	for range c.Stream(soon(t, 5*time.Second), slices.Values(ops)) {
		break
	}
	ctx, cancel := context.WithCancel(context.Background())
	silent := newFake(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	done := slices.Collect(clientOf(t, Options{}, silent).Stream(ctx, slices.Values(ops[:2])))
	if len(done) != 2 || !errors.Is(done[0].Err, context.Canceled) || !errors.Is(done[0].Err, ErrUnknownOutcome) {
		t.Errorf("%v", done)
	}
}
