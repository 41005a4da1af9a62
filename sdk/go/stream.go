package quorate

// Answers that are taken as they come, and server-sent events. Owns their syntax, and that a stream which is silent for too long ends.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// messageBytesMax is the longest event taken: a few times the largest entry with its former version.
const messageBytesMax = 16 << 20

var errSilent = errors.New("nothing came for too long")

// stream is an answer that is taken as it comes.
type stream struct {
	address string
	header  http.Header
	body    io.ReadCloser
	cancel  context.CancelFunc
	// lines are those of the body, for messages.
	lines *bufio.Reader
}

func newStream(address string, response *http.Response, cancel context.CancelFunc) *stream {
	return &stream{
		address: address, header: response.Header, body: response.Body, cancel: cancel,
		lines: bufio.NewReaderSize(response.Body, 16<<10),
	}
}

// close ends it. Another goroutine that reads from it gets an error.
func (s *stream) close() {
	s.cancel()
	// What is left of it is of no use.
	_ = s.body.Close()
}

// within bounds how long the read may take.
func (s *stream) within(silence time.Duration, read func() error) error {
	isSilent := make(chan struct{})
	timer := time.AfterFunc(silence, func() {
		close(isSilent)
		s.close()
	})
	err := read()
	if !timer.Stop() {
		<-isSilent
		return errSilent
	}
	return err
}

// read is io.Reader's, of a stream that may be silent for so long.
func (s *stream) read(into []byte, silence time.Duration) (n int, err error) {
	err = s.within(silence, func() (err error) {
		n, err = s.body.Read(into)
		return err
	})
	return n, err
}

// message is a server-sent event.
type message struct {
	name string
	// id is empty where there is none.
	id   string
	data string
}

// next is the next event. Comments, which only show that the stream lives, count as life.
func (s *stream) next(silence time.Duration) (message, error) {
	var found message
	size, isBegun := 0, false
	for {
		line, err := s.line(silence)
		if err != nil {
			return message{}, err
		}
		if size += len(line); size > messageBytesMax {
			return message{}, fmt.Errorf("an event of more than %d bytes", messageBytesMax)
		}
		if line == "" {
			if isBegun {
				return found, nil
			}
			continue
		}
		isBegun = found.take(line) || isBegun
	}
}

// take says whether the line is part of an event.
func (m *message) take(line string) bool {
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "event":
		m.name = value
	case "id":
		m.id = value
	case "data":
		if m.data != "" {
			m.data += "\n"
		}
		m.data += value
	default:
		return false
	}
	return true
}

func (s *stream) line(silence time.Duration) (string, error) {
	var text []byte
	err := s.within(silence, func() error {
		for {
			piece, err := s.lines.ReadSlice('\n')
			text = append(text, piece...)
			if !errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
			if len(text) > messageBytesMax {
				return fmt.Errorf("a line of more than %d bytes", messageBytesMax)
			}
		}
	})
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
