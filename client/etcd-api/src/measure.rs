//! How much a message is made of, counted over its bytes before anything of it is decoded.
//!
//! Two bytes of an empty element become a hundred once they are decoded: a bound on the length of a message is no bound on its
//! memory. Counts without an allocation, and ends beyond the given bound.

use crate::Error;

/// How much there is of a message, or may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measure {
    /// Elements of its lists, nested ones too.
    pub elements: usize,
    /// Fields, each as often as it comes, and elements.
    pub fields: usize,
}

/// Why a message is not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is more of it than may be.
    TooMuch,
    /// It cannot be decoded.
    Malformed,
}

/// Fields of a message that are more than a single value, with their numbers.
pub type Fields = &'static [(u32, Field)];

/// A field that is more than a single value.
#[derive(Debug)]
pub enum Field {
    /// A message. What comes again is added to it.
    One(fn() -> Fields),
    /// A list of messages.
    Messages(fn() -> Fields),
    /// A list of texts.
    Texts,
    /// A list of numbers, which may be packed.
    Numbers,
}

/// A message whose fields can be counted before they are decoded.
pub trait Measured {
    /// Its fields that are more than a single value, with their numbers.
    fn fields() -> Fields {
        &[]
    }

    /// What etcd says where it has too much; `None` where etcd says nothing.
    fn too_much() -> Option<Error> {
        None
    }
}

/// Measures a message as it comes over gRPC. What passes may still turn out not to be one of this kind once it is decoded, but then nothing
/// is decoded beyond what was measured: no length leads out of what it is in.
pub fn of_proto<M: Measured>(bytes: &[u8], most: Measure) -> Result<Measure, Fault> {
    let mut counter = Counter { found: Measure::default(), most };
    counter.message(bytes, M::fields(), 0)?;
    Ok(counter.found)
}

/// Measures a message as it comes as JSON, whatever its kind: each list in it is taken for one that is kept. What is no JSON may pass.
pub fn of_json(text: &[u8], most: Measure) -> Result<Measure, Fault> {
    let mut counter = Counter { found: Measure::default(), most };
    counter.json(text)?;
    Ok(counter.found)
}

/// Deepest messages in each other, as they are decoded.
const DEPTH_MAX: usize = 100;

/// Kinds of values on the wire.
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const WITH_LENGTH: u64 = 2;
const GROUP: u64 = 3;
const END_OF_GROUP: u64 = 4;
const FOUR_BYTES: u64 = 5;

struct Counter {
    found: Measure,
    most: Measure,
}

impl Counter {
    fn add(&mut self, elements: usize, fields: usize) -> Result<(), Fault> {
        self.found.elements += elements;
        self.found.fields += fields;
        let is_too_much = self.found.elements > self.most.elements || self.found.fields > self.most.fields;
        if is_too_much { Err(Fault::TooMuch) } else { Ok(()) }
    }

    fn message(&mut self, mut bytes: &[u8], fields: Fields, depth: usize) -> Result<(), Fault> {
        if depth > DEPTH_MAX {
            return Err(Fault::Malformed);
        }
        while !bytes.is_empty() {
            let (number, kind) = key(&mut bytes)?;
            self.add(0, 1)?;
            let known = fields.iter().find(|(known, _)| *known == number).map(|(_, field)| field);
            match (known, kind) {
                (Some(Field::Messages(within)), WITH_LENGTH) => {
                    self.add(1, 0)?;
                    self.message(value(&mut bytes, kind)?, within(), depth + 1)?;
                }
                (Some(Field::One(within)), WITH_LENGTH) => {
                    self.message(value(&mut bytes, kind)?, within(), depth + 1)?;
                }
                (Some(Field::Texts), WITH_LENGTH) => {
                    value(&mut bytes, kind)?;
                    self.add(1, 0)?;
                }
                (Some(Field::Numbers), WITH_LENGTH) => {
                    let packed = value(&mut bytes, kind)?;
                    // Each ends with the one byte of it that does not say that another follows.
                    let numbers = packed.iter().filter(|byte| **byte < 0x80).count();
                    self.add(numbers, numbers)?;
                }
                (Some(Field::Numbers), VARINT) => {
                    value(&mut bytes, kind)?;
                    self.add(1, 0)?;
                }
                // Of another kind than it has to be.
                (Some(_), _) => return Err(Fault::Malformed),
                (None, GROUP) => self.group(&mut bytes)?,
                (None, _) => {
                    value(&mut bytes, kind)?;
                }
            }
        }
        Ok(())
    }

    /// Passes over a group, the beginning of which was read, and those in it. No message here has one.
    fn group(&mut self, bytes: &mut &[u8]) -> Result<(), Fault> {
        let mut open = 1_usize;
        while open > 0 {
            let (_, kind) = key(bytes)?;
            self.add(0, 1)?;
            match kind {
                GROUP => open += 1,
                END_OF_GROUP => open -= 1,
                _ => {
                    value(bytes, kind)?;
                }
            }
        }
        Ok(())
    }

    fn json(&mut self, text: &[u8]) -> Result<(), Fault> {
        // Whether what it is in is a list, the innermost lowest; and how many it is in.
        let (mut lists, mut depth) = (0_u128, 0_u32);
        // Whether a list has begun of which nothing has come yet.
        let mut is_new = false;
        let mut bytes = text.iter();
        while let Some(byte) = bytes.next() {
            if byte.is_ascii_whitespace() {
                continue;
            }
            if std::mem::take(&mut is_new) && *byte != b']' {
                self.add(1, 0)?;
            }
            match byte {
                b'"' => pass_text(&mut bytes),
                b'[' | b'{' => {
                    self.add(0, 1)?;
                    depth += 1;
                    if depth > u128::BITS {
                        return Err(Fault::Malformed);
                    }
                    is_new = *byte == b'[';
                    lists = lists << 1 | u128::from(is_new);
                }
                b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    lists >>= 1;
                }
                b',' => self.add(usize::from(lists & 1 == 1), 1)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Passes over the rest of a text in JSON.
fn pass_text(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

/// The number of a field, and the kind of its value.
fn key(bytes: &mut &[u8]) -> Result<(u32, u64), Fault> {
    let key = u32::try_from(varint(bytes)?).map_err(|_| Fault::Malformed)?;
    match key >> 3 {
        0 => Err(Fault::Malformed),
        number => Ok((number, u64::from(key & 7))),
    }
}

/// Passes over a value; gives the bytes of one that has a length.
fn value<'b>(bytes: &mut &'b [u8], kind: u64) -> Result<&'b [u8], Fault> {
    let length = match kind {
        VARINT => {
            varint(bytes)?;
            0
        }
        EIGHT_BYTES => 8,
        FOUR_BYTES => 4,
        WITH_LENGTH => usize::try_from(varint(bytes)?).map_err(|_| Fault::Malformed)?,
        _ => return Err(Fault::Malformed),
    };
    let (value, rest) = bytes.split_at_checked(length).ok_or(Fault::Malformed)?;
    *bytes = rest;
    Ok(value)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Fault> {
    let mut number = 0;
    for place in 0..10 {
        let (byte, rest) = bytes.split_first().ok_or(Fault::Malformed)?;
        *bytes = rest;
        // The last one has room for one bit.
        if place == 9 && *byte > 1 {
            return Err(Fault::Malformed);
        }
        number |= u64::from(byte & 0x7f) << (7 * place);
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Fault::Malformed)
}
