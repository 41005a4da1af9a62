//! Reading of requests more strictly than serde's derives do.
//!
//! Owns three rules: a field that may be left out is not `null`, an object is not a list of its fields, and a list has a bound before
//! it takes memory. Never knows a single type.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value that is written as an object. Derived code would take a list of its fields too.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
    }
}

/// Of a field that may be left out: what is there is read as a value, so that `null` is one or is refused.
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Of an answer: a word that this version does not know is as good as none.
pub(crate) fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// [`given`] for an object.
pub(crate) fn given_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Object::deserialize(deserializer).map(|Object(value)| Some(value))
}

/// A list of objects.
pub(crate) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let list = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|Object(value)| value).collect())
}

/// A list of at most `MAX` items. Of a longer one no item beyond them is kept, and the fault says how many it has.
pub(crate) fn at_most<'de, const MAX: usize, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct Items<T, const MAX: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Items<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while list.len() < MAX {
                let Some(item) = items.next_element()? else { return Ok(list) };
                list.push(item);
            }
            let mut beyond = 0;
            while items.next_element::<IgnoredAny>()?.is_some() {
                beyond += 1;
            }
            match beyond {
                0 => Ok(list),
                beyond => Err(A::Error::custom(format!("a list of {} items; at most {MAX}", MAX + beyond))),
            }
        }
    }
    deserializer.deserialize_seq(Items::<T, MAX>(PhantomData))
}

/// [`at_most`] of objects.
pub(crate) fn objects_at_most<'de, const MAX: usize, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let list = at_most::<MAX, D, Object<T>>(deserializer)?;
    Ok(list.into_iter().map(|Object(value)| value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_no_object_with_its_items_as_fields() {
        #[derive(Debug, Deserialize)]
        struct Point {
            x: u8,
        }
        let Object(point) = serde_json::from_str::<Object<Point>>(r#"{"x":1}"#).expect("an object");
        assert_eq!(point.x, 1);
        assert!(serde_json::from_str::<Object<Point>>("[1]").is_err());
        assert!(serde_json::from_str::<Point>("[1]").is_ok(), "a derive alone takes it");
    }
}
