//! Server-sent events, taken apart as they come in.
//!
//! Owns their syntax. Pure: is fed pieces of a body, and knows neither where they come from nor what the events are about.

use bytes::{Buf, BytesMut};

/// The longest event taken: a few times the largest entry with its former version. Protects the memory of the caller.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// `event:`
    pub name: String,
    /// `id:`, where there is one.
    pub id: Option<String>,
    /// `data:`, several lines joined.
    pub data: String,
}

/// Why what comes in is not a stream of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadMessage {
    #[error("an event of more than {MESSAGE_BYTES_MAX} bytes")]
    TooLong,
    #[error("an event that is not UTF-8")]
    NotText,
}

/// What came in and is not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    buffer: BytesMut,
    /// Bytes at its start that hold no end of a line.
    searched: usize,
    /// The event whose end did not come yet.
    open: Message,
    open_bytes: usize,
    is_begun: bool,
}

impl Messages {
    /// Takes a piece.
    pub fn feed(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// The next event that is whole.
    pub fn next(&mut self) -> Result<Option<Message>, BadMessage> {
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
            let line = self.buffer.split_to(self.searched + at);
            self.buffer.advance(1);
            self.searched = 0;
            let line = std::str::from_utf8(&line).map_err(|_| BadMessage::NotText)?;
            if self.take_line(line.strip_suffix('\r').unwrap_or(line)) {
                (self.open_bytes, self.is_begun) = (0, false);
                return Ok(Some(std::mem::take(&mut self.open)));
            }
        }
        self.searched = self.buffer.len();
        if self.open_bytes + self.buffer.len() > MESSAGE_BYTES_MAX {
            return Err(BadMessage::TooLong);
        }
        Ok(None)
    }

    /// Whether the line is the end of an event.
    fn take_line(&mut self, line: &str) -> bool {
        if line.is_empty() {
            return self.is_begun;
        }
        self.open_bytes += line.len();
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.open.name),
            "id" => self.open.id = Some(value.to_owned()),
            "data" => {
                if !self.open.data.is_empty() {
                    self.open.data.push('\n');
                }
                self.open.data.push_str(value);
            }
            // A comment, which only shows that the stream lives, or something of a later version.
            _ => return false,
        }
        self.is_begun = true;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8], piece: usize) -> Vec<Message> {
        let (mut messages, mut found) = (Messages::default(), Vec::new());
        for piece in text.chunks(piece) {
            messages.feed(piece);
            while let Some(message) = messages.next().expect("well formed") {
                found.push(message);
            }
        }
        found
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let text = b":\n\nevent: put\ndata: {\"a\":1}\nid: 4.0\n\n: ping\r\nevent: end\r\ndata: a\r\ndata:b\r\nretry: 5\r\n\r\nevent: cut\n";
        let message = |name: &str, id: Option<&str>, data: &str| Message {
            name: name.into(),
            id: id.map(str::to_owned),
            data: data.into(),
        };
        let expected = [message("put", Some("4.0"), "{\"a\":1}"), message("end", None, "a\nb")];
        for piece in 1..text.len() {
            assert_eq!(all(text, piece), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_too_long_or_no_text_is_refused() {
        let mut messages = Messages::default();
        messages.feed(&vec![b'x'; MESSAGE_BYTES_MAX + 1]);
        assert_eq!(messages.next(), Err(BadMessage::TooLong));
        let mut messages = Messages::default();
        messages.feed(b"data: \xff\n\n");
        assert_eq!(messages.next(), Err(BadMessage::NotText));
    }
}
