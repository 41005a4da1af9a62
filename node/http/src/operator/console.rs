//! `/console/`: the page for people, as it was built from `console/` into `console/dist`.
//!
//! Owns how its files are served: to whom they may speak, for how long they are kept. Never knows what is in one; the page asks the
//! API as every client does.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use include_dir::{Dir, File, include_dir};
use quorate_api::{Applied, ErrorCode};
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::failure::Failure;
use quorate_threads::background;
use utoipa_axum::routes;
use xxhash_rust::xxh3::xxh3_64;

use crate::context::Context;
use crate::described::Common;
use crate::output::response::{Answer, Outcome, ok_lent};
use crate::routes::{Policy, Routes};

static DIST: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../console/dist");
/// What is at every path that is no file: the page finds out by itself where it is.
const INDEX: &str = "index.html";
/// Files below it are named after their content.
const ASSETS: &str = "assets/";

/// No code but the page's own, nobody to talk to but this node, no frame of another page around it.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

pub fn routes() -> Routes {
    // Where in the page one is, is for the page.
    let policy = Policy::node(Guard::None).passing_over_query();
    Routes::new().all(policy, [routes!(file), routes!(enter), routes!(root)])
}

/// A file as it is served.
struct Served {
    path: &'static str,
    kind: &'static str,
    plain: Bytes,
    packed: Bytes,
    tag: HeaderValue,
}

impl Served {
    fn new(file: &'static File<'static>) -> Self {
        let (path, contents) = (file.path().to_str().expect("built files have plain names"), file.contents());
        let kind = match path.rsplit_once('.').map_or("", |(_, end)| end) {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            "txt" => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        };
        let tag = HeaderValue::from_str(&format!("\"{:016x}\"", xxh3_64(contents))).expect("visible ASCII");
        Self { path, kind, plain: Bytes::from_static(contents), packed: pack(contents).into(), tag }
    }

    fn answer(&self, headers: &HeaderMap) -> Answer {
        let says = |name, word: &str| {
            let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            values.flat_map(|value| value.split(',')).any(|item| item.trim().trim_start_matches("W/") == word)
        };
        let is_packed = says(header::ACCEPT_ENCODING, "gzip");
        let mut answer =
            ok_lent(HeaderValue::from_static(self.kind), if is_packed { &self.packed } else { &self.plain });
        if is_packed {
            answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        answer.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        answer.headers_mut().insert(header::ETAG, self.tag.clone());
        if self.path.starts_with(ASSETS) {
            let for_ever = HeaderValue::from_static("public, max-age=31536000, immutable");
            answer.headers_mut().insert(header::CACHE_CONTROL, for_ever);
        }
        for (name, value) in HEADERS {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if self.tag.to_str().is_ok_and(|tag| says(header::IF_NONE_MATCH, tag)) {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            *answer.body_mut() = axum::body::Body::empty();
        }
        answer
    }
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;

    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let packed = packer.write_all(bytes).and_then(|()| packer.finish());
    packed.expect("memory takes everything")
}

/// All files, made ready at the first request.
fn files() -> &'static [Served] {
    FILES.get_or_init(|| {
        let below = DIST.dirs().flat_map(|dir| dir.files());
        DIST.files().chain(below).map(Served::new).collect()
    })
}

static FILES: OnceLock<Vec<Served>> = OnceLock::new();

/// Makes the files ready aside: to pack them takes longer than a step may that others wait behind.
async fn make_ready() -> Result<(), Failure> {
    if FILES.get().is_some() {
        return Ok(());
    }
    let made = background::blocking(|| files().len()).await;
    made.map(drop).map_err(|error| {
        Failure::new(ErrorCode::Internal, Applied::No, format!("the console was not made ready: {error}"))
    })
}

fn find(path: &str) -> Option<&'static Served> {
    let named = |path: &str| files().iter().find(|file| file.path == path);
    named(path).or_else(|| if path.starts_with(ASSETS) { None } else { named(INDEX) })
}

fn off() -> Failure {
    Failure::new(ErrorCode::NotFound, Applied::No, "this node serves no console (--no-console); ask another one")
}

/// The console: a page for people, in a browser. A path that is no file of it is the page itself.
#[utoipa::path(get, path = "/console/{path}", tag = "node", operation_id = "console",
    params(
        ("path" = String, Path, description = "A file, or where in the page one is; may be empty.", example = "keys"),
    ),
    responses(
        (status = 200, description = "A file.", body = String, content_type = "text/html"),
        (status = 304, description = "The file is as the caller has it."),
        (status = 404, description = "`not_found`: the node is told to serve none (`--no-console`), or there is no such asset.", body = quorate_api::Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn file(context: Context) -> Outcome {
    if !context.api.settings.console {
        return Err(off());
    }
    make_ready().await?;
    let none = || Failure::new(ErrorCode::NotFound, Applied::No, "the console has no such file; load the page again");
    find(context.name()).map(|file| file.answer(&context.head.headers)).ok_or_else(none)
}

/// Leads to the console.
#[utoipa::path(get, path = "/console", tag = "node", operation_id = "console_entry",
    responses(
        (status = 308, description = "The console is at `/console/`.", headers(("Location" = String, description = "`/console/`"))),
        (status = 404, description = "`not_found`: the node is told to serve none (`--no-console`).", body = quorate_api::Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn enter(context: Context) -> Outcome {
    lead(&context, StatusCode::PERMANENT_REDIRECT)
}

/// Leads people to the console.
#[utoipa::path(get, path = "/", tag = "node", operation_id = "root",
    responses(
        (status = 307, description = "The console is at `/console/`.", headers(("Location" = String, description = "`/console/`"))),
        (status = 404, description = "`not_found`: the node is told to serve none (`--no-console`).", body = quorate_api::Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn root(context: Context) -> Outcome {
    lead(&context, StatusCode::TEMPORARY_REDIRECT)
}

fn lead(context: &Context, status: StatusCode) -> Outcome {
    if !context.api.settings.console {
        return Err(off());
    }
    let mut answer = Answer::default();
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/console/"));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_the_page_but_for_files_and_assets_that_are_gone() {
        for path in ["", "keys", "entry/a%2Fb", "index.html"] {
            assert_eq!(find(path).map(|file| file.path), Some(INDEX), "{path}");
        }
        assert!(find("assets/gone.js").is_none(), "or a browser would run a page as code");
    }

    #[test]
    fn a_file_is_packed_for_who_takes_that_and_not_sent_again() {
        let page = find("").expect("it is built");
        let with = |name: HeaderName, value: &str| {
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_str(value).expect("text"))]);
            page.answer(&headers)
        };
        assert_eq!(with(header::ACCEPT_ENCODING, "br, gzip").headers()[header::CONTENT_ENCODING], "gzip");
        assert!(!with(header::ACCEPT_ENCODING, "br").headers().contains_key(header::CONTENT_ENCODING));
        let tag = page.tag.to_str().expect("text");
        for known in [tag.to_owned(), format!("W/{tag}, \"x\"")] {
            assert_eq!(with(header::IF_NONE_MATCH, &known).status(), StatusCode::NOT_MODIFIED);
        }
        assert_eq!(with(header::IF_NONE_MATCH, "\"x\"").status(), StatusCode::OK);
    }

    #[test]
    fn all_that_the_page_loads_is_there_and_small() {
        let page = std::str::from_utf8(DIST.get_file(INDEX).expect("it is built").contents()).expect("text");
        let loaded: Vec<_> = page.split("\"/console/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(loaded.len() > 1, "{page}");
        for path in loaded {
            assert!(DIST.get_file(path).is_some(), "{path} is not built");
        }
        assert!(
            !page.contains("<style") && !page.contains("style=") && !page.contains("<script>"),
            "inline code is refused"
        );
        let bytes: usize = files().iter().map(|file| file.packed.len()).sum();
        assert!(bytes <= 150 * 1024, "{bytes} bytes");
    }
}
