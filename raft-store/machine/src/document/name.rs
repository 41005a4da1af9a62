//! Names as criteria look at them: bytes, a text or not.
//!
//! Owns the search in them, and where their characters are. Never makes a name a text: two of them could become the same one.

/// A name that need not be a text: its characters, and the bytes that belong to none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'n>(pub(super) &'n [u8]);

impl Name<'_> {
    /// The first character with its length, or that the first byte belongs to none.
    pub(super) fn first(self) -> Option<(Option<char>, usize)> {
        let first = *self.0.first()?;
        let bytes = match first {
            0..0x80 => 1,
            0xC0..0xE0 => 2,
            0xE0..0xF0 => 3,
            0xF0.. => 4,
            0x80..0xC0 => return Some((None, 1)),
        };
        let character = self.0.get(..bytes).and_then(only_character);
        Some(if character.is_some() { (character, bytes) } else { (None, 1) })
    }

    /// The last character with its length, or that the last byte belongs to none.
    pub(super) fn last(self) -> Option<(Option<char>, usize)> {
        let end = self.0.len();
        self.0.last()?;
        let character = (1..=end.min(4)).find_map(|bytes| Some((only_character(&self.0[end - bytes..])?, bytes)));
        Some(character.map_or((None, 1), |(character, bytes)| (Some(character), bytes)))
    }
}

/// The character that all of these bytes are.
fn only_character(bytes: &[u8]) -> Option<char> {
    let mut characters = std::str::from_utf8(bytes).ok()?.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// Where the first place of `part` is, in time linear in both (Knuth, Morris, Pratt).
pub(super) fn find(name: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() || part.len() > name.len() {
        return part.is_empty().then_some(0);
    }
    // Of each start of the part: how much of its end is a start of the part, too.
    let mut borders = vec![0; part.len()];
    let mut matched = 0;
    for at in 1..part.len() {
        matched = longer(part, &borders, matched, part[at]);
        borders[at] = matched;
    }
    matched = 0;
    for (at, byte) in name.iter().enumerate() {
        matched = longer(part, &borders, matched, *byte);
        if matched == part.len() {
            return Some(at + 1 - matched);
        }
    }
    None
}

/// How much of the start of a part is matched with one byte more.
fn longer(part: &[u8], borders: &[usize], mut matched: usize, byte: u8) -> usize {
    while matched > 0 && part[matched] != byte {
        matched = borders[matched - 1];
    }
    matched + usize::from(part[matched] == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_where_it_first_stands() {
        let alphabet = [b'a', b'b', 0xFF];
        let words = |length: usize| {
            (0..alphabet.len().pow(length as u32))
                .map(move |n| (0..length).map(|at| alphabet[n / alphabet.len().pow(at as u32) % 3]).collect::<Vec<_>>())
        };
        for name in (0..7).flat_map(words) {
            for part in (0..4).flat_map(words) {
                let expected = match part.len() {
                    0 => Some(0),
                    length => name.windows(length).position(|window| window == part),
                };
                assert_eq!(find(&name, &part), expected, "{} in {}", part.escape_ascii(), name.escape_ascii());
            }
        }
    }

    #[test]
    fn characters_are_the_same_from_both_ends() {
        let bytes = [0x00, 0x61, 0x80, 0xBF, 0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0xED, 0xA0, 0xF0, 0x9F, 0x98, 0xFF];
        let all = bytes.map(|a| bytes.map(|b| bytes.map(|c| bytes.map(|d| [a, b, c, d]))));
        for name in all.as_flattened().as_flattened().as_flattened() {
            let (mut rest, mut forwards) = (Name(name), Vec::new());
            while let Some((character, bytes)) = rest.first() {
                forwards.push((character, bytes));
                rest = Name(&rest.0[bytes..]);
            }
            let (mut rest, mut backwards) = (Name(name), Vec::new());
            while let Some((character, bytes)) = rest.last() {
                backwards.insert(0, (character, bytes));
                rest = Name(&rest.0[..rest.0.len() - bytes]);
            }
            assert_eq!(forwards, backwards, "{}", name.escape_ascii());
            let texts: usize = name.utf8_chunks().map(|chunk| chunk.valid().chars().count()).sum();
            assert_eq!(forwards.iter().filter(|(character, _)| character.is_some()).count(), texts);
        }
    }
}
