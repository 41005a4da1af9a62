//! The object stores of clouds, and those that speak like them.
//!
//! Owns how they are opened: credentials come from the environment and the files of the clouds' own tools.

use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::{ClientConfigKey, ClientOptions, Result, RetryConfig};

use crate::credentials;

/// How long a connection may take to come about.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long a store may be silent: an answer to 8 MiB over a slow line takes its time.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// A request that failed for a moment's reason is sent again for so long.
const RETRY_MAX: Duration = Duration::from_secs(20);
/// Most retries of a request.
const RETRIES: usize = 4;

/// S3 as the environment says, and where it says nothing, as the profile does.
pub(crate) fn s3(bucket: &str) -> Result<AmazonS3> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry());
    let has_own = [
        AmazonS3ConfigKey::AccessKeyId,
        AmazonS3ConfigKey::WebIdentityTokenFile,
        AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
    ]
    .iter()
    .any(|key| builder.get_config_value(key).is_some());
    let profile = credentials::aws_profile();
    if !has_own && let (Some(id), Some(secret)) = (profile.key_id, profile.secret) {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        if let Some(token) = profile.token {
            builder = builder.with_token(token);
        }
    }
    if builder.get_config_value(&AmazonS3ConfigKey::Region).is_none()
        && let Some(region) = profile.region
    {
        builder = builder.with_region(region);
    }
    // A store of one's own without TLS is named as such: http://…; AWS_ALLOW_HTTP has to agree.
    let allows_http = builder
        .get_config_value(&AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp))
        .is_some_and(|value| value == "true");
    builder.with_client_options(client().with_allow_http(allows_http)).build()
}

/// Google's, as the environment says.
pub(crate) fn google(bucket: &str) -> Result<GoogleCloudStorage> {
    let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
    builder.with_client_options(client()).with_retry(retry()).build()
}

/// Azure's, as the environment says.
pub(crate) fn azure(container: &str) -> Result<MicrosoftAzure> {
    let builder = MicrosoftAzureBuilder::from_env().with_container_name(container);
    builder.with_client_options(client()).with_retry(retry()).build()
}

fn client() -> ClientOptions {
    provide_cryptography();
    ClientOptions::new().with_connect_timeout(CONNECT_MAX).with_read_timeout(SILENCE_MAX).with_timeout_disabled()
}

fn retry() -> RetryConfig {
    RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_MAX, ..RetryConfig::default() }
}

/// The HTTP client asks the process for its cryptography.
fn provide_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster: then there is one.
        let _is_there = rustls::crypto::ring::default_provider().install_default();
    }
}
