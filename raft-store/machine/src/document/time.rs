//! Times as text: RFC 3339.
//!
//! Owns how the wall clock stands in a document and how a string there is read as a time. Reads no clock.

use crate::entry::{ClusterMillis, WallMillis};

/// The first millisecond that RFC 3339 has a text for: the start of the year 0.
const FIRST_MS: i64 = -62_167_219_200_000;

/// The last one: the end of the year 9999.
const LAST_MS: i64 = 253_402_300_799_999;

/// A day in the milliseconds of Unix time, which has no leap seconds.
pub const MS_PER_DAY: i64 = 24 * 3600 * 1000;

/// Unix milliseconds as UTC with milliseconds: `2026-11-21T01:06:00.123Z`. A wall clock beyond the year 9999 shows as
/// its end.
pub fn format(wall: WallMillis) -> String {
    let wall = i64::try_from(wall).map_or(LAST_MS, |wall| wall.min(LAST_MS));
    from_unix_ms(wall).expect("from 1970 to 9999")
}

/// [`format()`] for times before 1970 too; `None` outside of the years 0 to 9999. These texts sort as the times do.
pub fn from_unix_ms(ms: i64) -> Option<String> {
    if !(FIRST_MS..=LAST_MS).contains(&ms) {
        return None;
    }
    let (year, month, day) = date_of(ms.div_euclid(MS_PER_DAY));
    let in_day = ms.rem_euclid(MS_PER_DAY);
    let (hour, minute, second, ms) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1000 % 60, in_day % 1000);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"))
}

/// Unix nanoseconds of a text in RFC 3339; `None` for any other. Fractions of up to nine digits and any offset are
/// understood; a leap second is not, since Unix time has none.
pub fn parse(text: &str) -> Option<i128> {
    let bytes = text.as_bytes();
    let (head, rest) = bytes.split_at_checked(19)?;
    let shape = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if shape.iter().any(|(at, mark)| head[*at] != *mark) || !matches!(head[10], b'T' | b't') {
        return None;
    }
    let (year, month, day) = (number(&head[0..4])?, number(&head[5..7])?, number(&head[8..10])?);
    let (hour, minute, second) = (number(&head[11..13])?, number(&head[14..16])?, number(&head[17..19])?);
    if !(1..=12).contains(&month)
        || !(1..=days_in(year, month)).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let (nanos, rest) = fraction(rest)?;
    let seconds = days_of(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(rest)?;
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanos))
}

/// Unix nanoseconds of a time in UTC as fourteen digits, `20260418153012`; `None` for any other text.
pub fn parse_compact(text: &str) -> Option<i128> {
    if text.len() != 14 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    let [date, time] = [(part(0..4), part(4..6), part(6..8)), (part(8..10), part(10..12), part(12..14))];
    parse(&format!("{}-{}-{}T{}:{}:{}Z", date.0, date.1, date.2, time.0, time.1, time.2))
}

/// The text of the millisecond in which these Unix nanoseconds are, see [`from_unix_ms`].
pub fn from_unix_nanos(nanos: i128) -> Option<String> {
    i64::try_from(nanos.div_euclid(1_000_000)).ok().and_then(from_unix_ms)
}

/// The wall clock at a moment of the cluster clock, seen from one at which both are known. Of a moment to come that is when it will be
/// if the cluster clock runs without a stop.
pub fn wall_at(moment: ClusterMillis, clock: ClusterMillis, wall: WallMillis) -> WallMillis {
    match moment.checked_sub(clock) {
        Some(ahead) => wall.saturating_add(ahead),
        None => wall.saturating_sub(clock - moment),
    }
}

/// Nanoseconds behind the point, if there is one, and what follows.
fn fraction(rest: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = rest.strip_prefix(b".") else { return Some((0, rest)) };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let value = number(&rest[..digits])?;
    Some((value * 10_i64.pow(u32::try_from(9 - digits).expect("at most 9")), &rest[digits..]))
}

/// Seconds that the offset at the end of a time is ahead of UTC.
fn offset(rest: &[u8]) -> Option<i64> {
    match rest {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
            let seconds = hours * 3600 + minutes * 60;
            (hours <= 23 && minutes <= 59).then_some(if *sign == b'+' { seconds } else { -seconds })
        }
        _ => None,
    }
}

/// Up to nine decimal digits.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

// The two below count in years that begin in March, so that a leap day is the last of its year, and in eras of 400
// years, which all have the same 146,097 days. 719,468 days lie between the first of March of the year 0 and 1970.

/// Days since 1970-01-01 of a date of the Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Reverses [`days_of`]: year, month, day.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}
