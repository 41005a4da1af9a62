//! The settings as they may leave the machine.
//!
//! Owns what of them is a secret. Settings name files of secrets and never hold one, but for addresses, which may have a user, a
//! password or a key in them; whatever is called like a secret is left out in any case.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Args;

/// What stands for something that is not shown.
const LEFT_OUT: &str = "(left out)";
/// What the names of settings with secrets have in them.
const SECRETS: [&str; 4] = ["secret", "password", "passphrase", "credential"];
/// What the names of settings end with that name a file instead.
const FILES: [&str; 3] = ["_file", "_dir", "_path"];

/// Every setting that was given, by its name in a file.
pub fn settings(args: &Args) -> BTreeMap<String, String> {
    let Ok(Value::Object(fields)) = serde_json::to_value(args) else { return BTreeMap::new() };
    let shown = |(name, value): (String, Value)| {
        let text = shown(&name, text(&value)?);
        Some((name, text))
    };
    fields.into_iter().filter_map(shown).collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn shown(name: &str, text: String) -> String {
    let is_file = FILES.iter().any(|end| name.ends_with(end));
    let is_secret = !is_file && SECRETS.iter().any(|part| name.contains(part));
    let is_token = !is_file && (name.ends_with("token") || name.ends_with("access_key"));
    if is_secret || is_token { LEFT_OUT.to_owned() } else { without_secrets(&text) }
}

/// An address without the user and password before its host, and without its query; anything else as it is.
fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (authority, path) = match rest.find(['/', '?', '#']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{LEFT_OUT}@{host}"),
        None => authority.to_owned(),
    };
    let path = match path.find(['?', '#']) {
        Some(at) => format!("{}?{LEFT_OUT}", &path[..at]),
        None => path.to_owned(),
    };
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_shown_and_no_secret_in_it() {
        let args = Args {
            node_id: Some(3),
            root_token_file: Some("/etc/quorate/root.token".into()),
            tls_key: Some("/etc/quorate/node.key".into()),
            otlp_endpoint: Some("http://user:s3cret@collector:4318/v1?key=s3cret".into()),
            ..Args::default()
        };
        let shown = settings(&args);
        assert_eq!(shown["node_id"], "3");
        assert_eq!(shown["root_token_file"], "/etc/quorate/root.token");
        assert_eq!(shown["tls_key"], "/etc/quorate/node.key");
        assert_eq!(shown["otlp_endpoint"], "http://(left out)@collector:4318/v1?(left out)");
        assert_eq!(shown.len(), 4, "what was not given is not there: {shown:?}");
    }

    #[test]
    fn names_and_addresses_give_secrets_away() {
        for (name, text, expected) in [
            ("s3_secret_key", "s3cret", LEFT_OUT),
            ("proxy_password", "s3cret", LEFT_OUT),
            ("api_token", "s3cret", LEFT_OUT),
            ("s3_access_key", "s3cret", LEFT_OUT),
            ("credentials_file", "/etc/x", "/etc/x"),
            ("join", "1=a:1,2=b:2", "1=a:1,2=b:2"),
            ("url", "https://h", "https://h"),
            ("url", "https://a@b@h/p#s3cret", "https://(left out)@h/p?(left out)"),
            ("url", "https://h?s3cret", "https://h?(left out)"),
        ] {
            assert_eq!(shown(name, text.to_owned()), expected, "{name}");
        }
    }
}
