package quorate

// What this client shows to nodes and what it believes of them: the token, its certificate, the CAs. Owns when files are read again.
// Never lets go of what it has for something that cannot be read: a file may be half written.

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"sync"
	"time"

	"quorate.dev/go/api"
)

// lookEvery is how often files are looked at, at most.
const lookEvery = time.Second

// shown is what is shown and believed from one look to the next.
type shown struct {
	// generation is greater than that of what was shown before.
	generation    int
	authorization string
	// tls is nil where no CA is named.
	tls *tls.Config
}

type stamp struct {
	modified time.Time
	size     int64
}

// credentials of a client.
type credentials struct {
	options *Options

	mu     sync.Mutex
	lookAt time.Time
	stamps map[string]stamp
	kept   *shown
}

func readCredentials(options *Options) (*credentials, error) {
	c := &credentials{options: options, lookAt: time.Now().Add(lookEvery)}
	c.stamps = c.look()
	kept, err := options.show(0)
	if err != nil {
		return nil, err
	}
	c.kept = kept
	return c, nil
}

// shown is what to show now.
func (c *credentials) shown() *shown {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); !now.Before(c.lookAt) {
		c.lookAt = now.Add(lookEvery)
		c.refresh()
	}
	return c.kept
}

// isNewerThan looks at once, since a node did not like what it was shown. Whether there is something newer than that.
func (c *credentials) isNewerThan(generation int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	return c.kept.generation > generation
}

func (c *credentials) refresh() {
	// Before they are read: what is written meanwhile is seen the next time.
	stamps := c.look()
	if equalStamps(stamps, c.stamps) {
		return
	}
	kept, err := c.options.show(c.kept.generation + 1)
	if err != nil {
		c.options.log("credentials cannot be read again; the former ones stay in use", "error", err)
		return
	}
	c.kept, c.stamps = kept, stamps
}

// look is the state of the files that there are.
func (c *credentials) look() map[string]stamp {
	stamps := map[string]stamp{}
	for _, path := range []string{c.options.CAFile, c.options.CertFile, c.options.KeyFile, c.options.TokenFile} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			stamps[path] = stamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

func equalStamps(one, other map[string]stamp) bool {
	if len(one) != len(other) {
		return false
	}
	for path, at := range one {
		if known, ok := other[path]; !ok || !known.modified.Equal(at.modified) || known.size != at.size {
			return false
		}
	}
	return true
}

// show reads what is in files.
func (o *Options) show(generation int) (*shown, error) {
	config, err := o.tlsConfig()
	if err != nil {
		return nil, err
	}
	authorization, err := o.authorization()
	if err != nil {
		return nil, err
	}
	return &shown{generation: generation, authorization: authorization, tls: config}, nil
}

// authorization is what that header says; empty without a token.
func (o *Options) authorization() (string, error) {
	token, from := o.Token, "the token"
	if o.TokenFile != "" {
		text, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return "", localError(api.ErrorCodeInvalidArgument, err, "the token: %v", err)
		}
		token, from = string(text), o.TokenFile
	} else if token == "" {
		return "", nil
	}
	token = strings.TrimRight(token, "\r\n")
	if !isPrintable(token) {
		return "", invalid("%s is not one line of printable ASCII", from)
	}
	return "Bearer " + token, nil
}

func isPrintable(text string) bool {
	for _, b := range []byte(text) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return text != ""
}

// tlsConfig believes only CAs that were named: no roots of the system, and never a node without a certificate.
func (o *Options) tlsConfig() (*tls.Config, error) {
	ca, err := pemOf(o.CAFile, o.CAPEM)
	if err != nil {
		return nil, err
	}
	cert, err := pemOf(o.CertFile, o.CertPEM)
	if err != nil {
		return nil, err
	}
	key, err := pemOf(o.KeyFile, o.KeyPEM)
	if err != nil {
		return nil, err
	}
	if (cert == nil) != (key == nil) {
		return nil, invalid("a certificate and its key belong together; give both or none")
	}
	if ca == nil {
		if cert != nil {
			return nil, invalid("a certificate is only shown to nodes that have one: name the CA of theirs too (CAFile, QUORATE_CA)")
		}
		return nil, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, invalid("%s has no certificate in it (PEM)", nameOf(o.CAFile))
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if cert != nil {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, localError(api.ErrorCodeInvalidArgument, err, "%s: %v", nameOf(o.CertFile), err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func nameOf(path string) string {
	if path == "" {
		return "PEM text that was given"
	}
	return path
}

// pemOf reads the file where one is named; nil where there is neither.
func pemOf(path string, given []byte) ([]byte, error) {
	if path == "" {
		return given, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, localError(api.ErrorCodeInvalidArgument, err, "%v", err)
	}
	return text, nil
}
