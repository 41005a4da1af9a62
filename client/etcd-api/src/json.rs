//! How fields look in JSON where serde's own way differs from the protocol's.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whether a field is left out.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a field of which `null` is the default.
pub fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Integers: 64 bits are written as strings; each may be read as either.
pub mod integer {
    use std::fmt::{self, Display};
    use std::marker::PhantomData;
    use std::str::FromStr;

    use serde::de::{Error, Unexpected, Visitor};
    use serde::{Deserializer, Serializer};

    pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr + TryFrom<i64> + TryFrom<u64> + Default,
    {
        deserializer.deserialize_any(Integer(PhantomData))
    }

    struct Integer<T>(PhantomData<T>);

    impl<T: FromStr + TryFrom<i64> + TryFrom<u64> + Default> Visitor<'_> for Integer<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an integer, as a number or as text")
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
            T::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
            T::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
            match value.fract() == 0.0 && value.abs() < 9e15 {
                true => self.visit_i64(value as i64),
                false => Err(E::invalid_value(Unexpected::Float(value), &self)),
            }
        }

        fn visit_str<E: Error>(self, value: &str) -> Result<T, E> {
            value.parse().map_err(|_| E::invalid_value(Unexpected::Str(value), &self))
        }

        fn visit_unit<E: Error>(self) -> Result<T, E> {
            Ok(T::default())
        }
    }
}

/// Bytes: standard base64; read in either alphabet, with or without padding.
pub mod base64 {
    use base64::Engine;
    use base64::alphabet;
    use base64::engine::general_purpose::STANDARD;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    use bytes::Bytes;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const EITHER: [GeneralPurpose; 2] =
        [GeneralPurpose::new(&alphabet::STANDARD, LENIENT), GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT)];

    pub fn serialize<S: Serializer>(value: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(value))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(Bytes::new()) };
        let decoded = EITHER.iter().find_map(|alphabet| alphabet.decode(&text).ok());
        decoded.map(Bytes::from).ok_or_else(|| D::Error::custom("not base64"))
    }
}

/// Bytes on their own.
#[derive(Serialize, Deserialize)]
pub struct Base64(#[serde(with = "base64")] pub Bytes);

/// An integer on its own.
#[derive(Deserialize)]
pub struct Integer(#[serde(deserialize_with = "integer::deserialize")] pub i64);

/// Of what excludes each other, the one that is given. A flattened enumeration would pass over all that is wrong with it.
pub fn one_of<T, const N: usize>(given: [Option<T>; N]) -> Result<Option<T>, &'static str> {
    let mut given = given.into_iter().flatten();
    match (given.next(), given.next()) {
        (one, None) => Ok(one),
        (_, Some(_)) => Err("two of what excludes each other are given"),
    }
}

/// Lists of bytes, each in base64.
pub mod base64_list {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Base64 as Item;

    pub fn serialize<S: Serializer>(values: &[Bytes], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().cloned().map(Item))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Bytes>, D::Error> {
        let read = Option::<Vec<Item>>::deserialize(deserializer)?.unwrap_or_default();
        Ok(read.into_iter().map(|Item(bytes)| bytes).collect())
    }
}

/// An enumeration whose values have names in the protocol.
pub trait Named: Copy + Into<i32> + 'static {
    /// All values with their names.
    const NAMES: &'static [(Self, &'static str)];
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NameOrNumber {
    Number(i32),
    Name(String),
}

impl NameOrNumber {
    fn number<T: Named, E: serde::de::Error>(self) -> Result<i32, E> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Name(name) => {
                let known = T::NAMES.iter().find(|(_, known)| *known == name);
                known.map(|(value, _)| (*value).into()).ok_or_else(|| E::custom(format!("`{name}` is no value of it")))
            }
        }
    }
}

/// A number that the protocol has no name for is written as itself.
#[derive(Serialize)]
#[serde(untagged)]
enum Written {
    Name(&'static str),
    Number(i32),
}

impl Written {
    fn of<T: Named>(number: i32) -> Self {
        let known = T::NAMES.iter().find(|(value, _)| (*value).into() == number);
        known.map_or(Self::Number(number), |(_, name)| Self::Name(name))
    }
}

/// One or more values of an enumeration, each written by name, and read by name or number.
pub trait Values: Sized {
    /// Writes them.
    fn write<T: Named, S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
    /// Reads them.
    fn read<'de, T: Named, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

impl Values for i32 {
    fn write<T: Named, S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written::of::<T>(*self).serialize(serializer)
    }

    fn read<'de, T: Named, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<NameOrNumber>::deserialize(deserializer)?.map_or(Ok(0), NameOrNumber::number::<T, _>)
    }
}

impl Values for Vec<i32> {
    fn write<T: Named, S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|number| Written::of::<T>(*number)))
    }

    fn read<'de, T: Named, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Option::<Vec<NameOrNumber>>::deserialize(deserializer)?.unwrap_or_default();
        read.into_iter().map(NameOrNumber::number::<T, _>).collect()
    }
}
