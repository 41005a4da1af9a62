//! The signals that a command takes for those that it runs or waits with.
//!
//! Owns which they are, and whether one asked us to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::fail::Failed;
use crate::sys;

/// What a shell adds to the number of the signal that ended a command.
pub const SIGNALLED: u8 = 128;

const TAKEN: [i32; 6] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGTSTP, libc::SIGCONT];

/// The signals that are passed on.
pub struct Signals {
    streams: Vec<(i32, Signal)>,
    told_to_end: bool,
}

impl Signals {
    /// Takes them from now on.
    pub fn take() -> Result<Self, Failed> {
        let stream = |number| match signal(SignalKind::from_raw(number)) {
            Ok(stream) => Ok((number, stream)),
            Err(error) => Err(Failed::other(format!("cannot take signal {number}: {error}"))),
        };
        let streams = TAKEN.into_iter().map(stream).collect::<Result<_, Failed>>()?;
        Ok(Self { streams, told_to_end: false })
    }

    /// The number of the next one, where nothing has to be stopped with us: Ctrl-Z just stops.
    pub async fn next(&mut self) -> i32 {
        loop {
            match self.any().await {
                libc::SIGTSTP => sys::stop_self(),
                libc::SIGCONT => {}
                number => return number,
            }
        }
    }

    /// The number of the next one, those included that ask to stop and to go on.
    pub async fn any(&mut self) -> i32 {
        let next = self.streams.iter_mut().map(|(number, stream)| {
            Box::pin(async move {
                match stream.recv().await {
                    Some(()) => *number,
                    None => std::future::pending().await,
                }
            })
        });
        let number = futures::future::select_all(next).await.0;
        // HUP asks many programs to read their configuration.
        self.told_to_end |= matches!(number, libc::SIGINT | libc::SIGQUIT | libc::SIGTERM);
        number
    }

    /// A command in the foreground of the terminal was ended by what was typed there, which we do not see.
    pub fn note_end(&mut self) {
        self.told_to_end = true;
    }

    /// Whether there was one that asks to end.
    pub fn was_told_to_end(&self) -> bool {
        self.told_to_end
    }

    /// How it looks if one comes before there is a command to take it.
    pub fn ended_by(number: i32) -> Failed {
        let code = SIGNALLED + u8::try_from(number).expect("signals are small numbers");
        Failed::exit(code, format!("ended by signal {number} while waiting"))
    }
}
