//! How requests are refined by what a command line says.

/// A request whose methods take it and give it back refined.
pub trait Refined: Sized {
    /// Refined by a value, where one was given.
    fn given<T>(self, value: Option<T>, by: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => by(self, value),
            None => self,
        }
    }

    /// Refined where that was asked for.
    fn asked(self, is_asked: bool, by: impl FnOnce(Self) -> Self) -> Self {
        if is_asked { by(self) } else { self }
    }
}

impl<T> Refined for T {}
