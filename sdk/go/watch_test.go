package quorate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"quorate.dev/go/api"
)

// streaming answers each connection with the next of these texts, and holds the last one open.
func streaming(t *testing.T, texts ...string) *fake {
	return newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Quorate-Revision", "10")
		w.WriteHeader(200)
		_, _ = io.WriteString(w, texts[min(n, len(texts))-1])
		w.(http.Flusher).Flush()
		if n >= len(texts) {
			<-r.Context().Done()
		}
	})
}

func put(key string, revision int, id string) string {
	text := fmt.Sprintf("event: put\ndata: {\"type\":\"put\",\"revision\":\"%d\",\"key\":%q,\"entry\":{\"key\":%q,\"value\":1,\"content_type\":\"json\",\"cas\":\"1\",\"create_revision\":\"1\",\"mod_revision\":\"1\",\"version\":1}}\n",
		revision, key, key)
	if id != "" {
		text += "id: " + id + "\n"
	}
	return text + "\n"
}

func next(t *testing.T, w *Watch) Event {
	t.Helper()
	event, err := w.Next()
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func TestAWatchGoesOnBehindTheLastWholeRevision(t *testing.T) {
	f := streaming(t,
		"retry: 1000\n\n"+put("a", 11, "11.0")+put("b", 12, ""), // the rest of 12 is cut off
		put("b", 12, "")+put("c", 12, "12.1")+"event: progress\ndata: {\"revision\":\"20\"}\nid: 20\n\n",
		"event: later\ndata: ?\n\n"+put("d", 21, "21.0"))
	w, err := clientOf(t, Options{}, f).Watch(soon(t, 5*time.Second), "p/", nil)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for range 4 {
		keys = append(keys, next(t, w).Key)
	}
	if got := strings.Join(keys, " "); got != "a b c d" || w.Revision() != 21 {
		t.Errorf("%s, at %d", got, w.Revision())
	}
	came := f.requests()
	for n, id := range []string{"", "11", "20"} {
		if got := came[n].header.Get("Last-Event-ID"); got != id {
			t.Errorf("connection %d goes on behind %q, not %q", n+1, got, id)
		}
	}
}

func TestAWatchFromNowGoesOnFromWhereItBegan(t *testing.T) {
	f := streaming(t, "", put("a", 11, "11.0"))
	w, err := clientOf(t, Options{}, f).Watch(soon(t, 5*time.Second), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	next(t, w)
	if got := f.requests()[1].header.Get("Last-Event-ID"); got != "10" {
		t.Errorf("it went on behind %q", got)
	}
}

func TestABreakAmongTheInitialEntriesIsTold(t *testing.T) {
	initial := strings.Replace(put("a", 5, ""), `"type":"put"`, `"type":"put","initial":true`, 1)
	f := streaming(t, initial, initial+"event: synced\nid: 10\ndata: {\"revision\":\"10\"}\n\n")
	w, err := clientOf(t, Options{}, f).Watch(soon(t, 5*time.Second), "", &WatchOptions{Initial: true})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for range 4 {
		kinds = append(kinds, string(next(t, w).Kind))
	}
	if got := strings.Join(kinds, " "); got != "put restarted put synced" {
		t.Error(got)
	}
}

func TestAWatchWhoseHistoryIsGoneSaysFromWhereItCanBeRead(t *testing.T) {
	f := streaming(t, "event: end\ndata: {\"code\":\"compacted\",\"detail\":\"d\",\"oldest_revision\":\"7\"}\n\n")
	w, err := clientOf(t, Options{}, f).Watch(soon(t, 5*time.Second), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Next()
	var e *Error
	if !errors.Is(err, ErrCompacted) || !errors.As(err, &e) || e.OldestRevision != 7 {
		t.Errorf("%v", err)
	}
	refused := newFake(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		refuse(w, 410, api.ErrorCodeCompacted, api.RetryAfterReading, `,"oldest_revision":"9"`)
	})
	if _, err := clientOf(t, Options{}, refused).Watch(soon(t, 5*time.Second), "", &WatchOptions{From: 1}); !errors.Is(err, ErrCompacted) {
		t.Errorf("%v", err)
	}
}

func TestAWatchLeavesANodeThatEndsOrIsSilent(t *testing.T) {
	f := streaming(t, "event: end\ndata: {\"code\":\"stopping\",\"detail\":\"d\"}\n\n", "event: end\ndata: {\"code\":\"tea_time\",\"detail\":\"d\"}\n\n",
		put("a", 11, "11.0"))
	w, err := clientOf(t, Options{}, f).Watch(soon(t, 5*time.Second), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	next(t, w)
	silent := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		if n > 1 {
			_, _ = io.WriteString(w, put("a", 11, "11.0"))
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	w, err = clientOf(t, Options{}, silent).Watch(soon(t, 5*time.Second), "", &WatchOptions{Heartbeat: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	next(t, w)
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	f := streaming(t, put("a", 11, "11.0"))
	ctx, cancel := context.WithCancel(soon(t, 5*time.Second))
	defer cancel()
	w, err := clientOf(t, Options{}, f).Watch(ctx, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, err := range w.Events() {
		if err != nil {
			t.Fatal(err)
		}
		count++
		cancel()
	}
	if _, err := w.Next(); count != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d events, then %v", count, err)
	}
}

func TestWhatAWatchCannotReadIsTold(t *testing.T) {
	f := streaming(t, "event: put\ndata: {\n\n")
	w, err := clientOf(t, Options{}, f).Watch(soon(t, 5*time.Second), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Next(); !errors.Is(err, ErrProtocol) {
		t.Errorf("%v", err)
	}
}

func TestEventsAreTheSameHoweverTheirLinesEnd(t *testing.T) {
	text := ":\n\nevent: put\ndata: {\"a\":1}\nid: 4.0\n\n: ping\r\nevent: end\r\ndata: a\r\ndata:b\r\nretry: 5\r\n\r\nevent: cut\n"
	s := newStream("n", &http.Response{Body: io.NopCloser(strings.NewReader(text))}, func() {})
	for _, expected := range []message{{"put", "4.0", `{"a":1}`}, {"end", "", "a\nb"}} {
		if got, err := s.next(time.Second); err != nil || got != expected {
			t.Errorf("%v, %v", got, err)
		}
	}
	if got, err := s.next(time.Second); !errors.Is(err, io.EOF) {
		t.Errorf("an event that was cut: %v, %v", got, err)
	}
	long := newStream("n", &http.Response{Body: io.NopCloser(strings.NewReader(strings.Repeat("x", messageBytesMax+1)))}, func() {})
	if _, err := long.next(time.Second); err == nil {
		t.Error("a line without an end was taken")
	}
}
