//! Credentials of S3 in the files that its own tools keep.
//!
//! Owns reading a profile. What the environment says goes before it, and is read by `object_store`. Never shown, never logged.

use std::path::PathBuf;

/// What a profile says.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) key_id: Option<String>,
    pub(crate) secret: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) region: Option<String>,
}

/// The profile of the environment: `AWS_PROFILE` of `~/.aws/credentials` and `~/.aws/config`. Files that are not there say nothing.
pub(crate) fn aws_profile() -> Profile {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let name = variable("AWS_PROFILE").unwrap_or("default".into());
    let file = |variable_name: &str, file_name: &str| {
        let path = variable(variable_name).map(PathBuf::from);
        let path = path.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".aws").join(file_name)));
        path.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
    };
    let mut profile = Profile::default();
    profile.read(&file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), &name);
    let section = if name == "default" { name } else { format!("profile {name}") };
    profile.read(&file("AWS_CONFIG_FILE", "config"), &section);
    profile
}

impl Profile {
    /// Takes from a file's section what is not known yet.
    fn read(&mut self, text: &str, section: &str) {
        let mut is_inside = false;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                is_inside = name.trim() == section;
            } else if let Some((key, value)) = line.split_once('=').filter(|_| is_inside) {
                let place = match key.trim() {
                    "aws_access_key_id" => &mut self.key_id,
                    "aws_secret_access_key" => &mut self.secret,
                    "aws_session_token" => &mut self.token,
                    "region" => &mut self.region,
                    _ => continue,
                };
                place.get_or_insert_with(|| value.trim().to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_section_of_the_profile_counts_and_what_was_said_first() {
        let credentials = "\
# kept by the tool
[other]
aws_access_key_id = wrong
[default]
aws_access_key_id = AKIA
aws_secret_access_key=s3cr=t
";
        let mut profile = Profile::default();
        profile.read(credentials, "default");
        profile.read("[default]\nregion = eu-west-3\naws_access_key_id = late\n", "default");
        assert_eq!(profile.key_id.as_deref(), Some("AKIA"));
        assert_eq!(profile.secret.as_deref(), Some("s3cr=t"));
        assert_eq!(profile.region.as_deref(), Some("eu-west-3"));
        assert!(profile.token.is_none());
    }
}
