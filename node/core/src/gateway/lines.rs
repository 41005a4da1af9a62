//! Lines out of the pieces in which they come.
//!
//! Owns the bytes of a stream that came and were not taken yet, and the bound on one line. Never looks into a line. A line
//! that came in one piece is not copied, and no byte is searched twice.

use bytes::{Bytes, BytesMut};

/// Splits at `\n`. What follows the last `\n` of a stream is a line too.
#[derive(Debug)]
pub struct Lines {
    line_bytes_max: usize,
    /// Rest of the last piece.
    piece: Bytes,
    /// A line that began in earlier pieces and had no end there.
    begun: BytesMut,
}

/// What there is to take.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A line without its end.
    Line(Bytes),
    /// No whole line: the next piece is needed.
    More,
    /// The line that comes is longer than it may be, and where the next one begins is not known.
    TooLong,
}

impl Lines {
    /// Nothing came yet.
    pub fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, piece: Bytes::new(), begun: BytesMut::new() }
    }

    /// The next piece came. Only after [`Next::More`]: what came before is used up then.
    pub fn feed(&mut self, piece: Bytes) {
        assert!(self.piece.is_empty(), "{} bytes of the last piece are not taken", self.piece.len());
        self.piece = piece;
    }

    /// Bytes held.
    pub fn held(&self) -> usize {
        self.piece.len() + self.begun.len()
    }

    /// Bytes of a line that has begun and not ended.
    pub fn begun(&self) -> usize {
        self.begun.len()
    }

    /// Whether there may be a line without another piece.
    pub fn has_piece(&self) -> bool {
        !self.piece.is_empty()
    }

    /// Takes the next line.
    pub fn next_line(&mut self) -> Next {
        let end = memchr::memchr(b'\n', &self.piece);
        let length = self.begun.len() + end.unwrap_or(self.piece.len());
        if length > self.line_bytes_max {
            return Next::TooLong;
        }
        let Some(end) = end else {
            self.begun.extend_from_slice(&self.piece);
            self.piece = Bytes::new();
            return Next::More;
        };
        let mut line = self.piece.split_to(end + 1);
        line.truncate(end);
        if self.begun.is_empty() {
            return Next::Line(line);
        }
        self.begun.extend_from_slice(&line);
        Next::Line(std::mem::take(&mut self.begun).freeze())
    }

    /// Takes the last line of a stream that has ended.
    pub fn last(&mut self) -> Bytes {
        assert!(self.piece.is_empty(), "{} bytes are not taken", self.piece.len());
        std::mem::take(&mut self.begun).freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the text in pieces of this length; gives the lines and what is left.
    fn split(text: &str, piece_bytes: usize, line_bytes_max: usize) -> (Vec<String>, Option<String>) {
        let mut lines = Lines::new(line_bytes_max);
        let mut taken = Vec::new();
        for piece in text.as_bytes().chunks(piece_bytes) {
            lines.feed(Bytes::copy_from_slice(piece));
            loop {
                match lines.next_line() {
                    Next::Line(line) => taken.push(String::from_utf8(line.to_vec()).expect("ASCII")),
                    Next::More => break,
                    Next::TooLong => return (taken, None),
                }
            }
        }
        assert_eq!(lines.held(), lines.begun());
        (taken, Some(String::from_utf8(lines.last().to_vec()).expect("ASCII")))
    }

    #[test]
    fn lines_are_the_same_whatever_the_pieces() {
        for piece_bytes in 1..12 {
            let (lines, last) = split("one\n\ntwo\r\nthree", piece_bytes, 5);
            assert_eq!(lines, ["one", "", "two\r"], "pieces of {piece_bytes}");
            assert_eq!(last.as_deref(), Some("three"), "pieces of {piece_bytes}");
        }
    }

    #[test]
    fn a_line_over_the_limit_is_found_before_its_end_comes() {
        for piece_bytes in 1..12 {
            assert_eq!(split("12345\n123456", piece_bytes, 5), (vec!["12345".to_owned()], None), "{piece_bytes}");
            assert_eq!(split("123456\n1", piece_bytes, 5), (vec![], None), "{piece_bytes}");
        }
    }
}
