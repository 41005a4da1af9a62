package quorate

// Lists that come in pages.

import (
	"context"
	"iter"
)

// get reads what a path names, if the path is one.
func get[T any](ctx context.Context, c *Client) func(path string, err error) (*T, error) {
	return func(path string, err error) (*T, error) {
		if err != nil {
			return nil, err
		}
		return fetch[T](ctx, c, c.readCall(path))
	}
}

// pages are the items of all pages, which are fetched one by one as the loop goes on. The last is the first error.
func pages[A, T any](page func(cursor string) (*A, error), cursor func(*A) string, items func(*A) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for at := ""; ; {
			answer, err := page(at)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, item := range items(answer) {
				if !yield(item, nil) {
					return
				}
			}
			if at = cursor(answer); at == "" {
				return
			}
		}
	}
}

// listed are all pages of a route.
func listed[A, T any](ctx context.Context, c *Client, path string, cursor func(*A) string, items func(*A) []T, query ...string) iter.Seq2[T, error] {
	page := func(at string) (*A, error) {
		return fetch[A](ctx, c, c.readCall(target(path, append([]string{"limit", "1000", "cursor", at}, query...)...)))
	}
	return pages(page, cursor, items)
}
