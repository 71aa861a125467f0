//! The files with which a user proves to a proxy who it is.

use std::path::Path;

use swiftwater_tunnel::proxy::Token;

use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::read_limited;
use crate::identity::Identity;

/// The largest file with a token, bytes.
const MAX_TOKEN_FILE: u64 = 64 << 10;

/// The user's certificate, if the files of it and its key are given.
pub(crate) fn read_identity(
    cert: Option<&Path>,
    key: Option<&Path>,
) -> Result<Option<Identity>, Failure> {
    match (cert, key) {
        (Some(cert), Some(key)) => Identity::from_files(cert, key).map(Some),
        _ => Ok(None),
    }
}

/// The token in the first line of a file, which may follow the name of the user.
pub(crate) fn read_token(file: &Path) -> Result<Token, Failure> {
    let failure = |why: String| {
        Failure::new(
            Exit::LocalFile,
            format_args!("token {}: {why}", file.display()),
        )
    };
    let bytes =
        read_limited(file, MAX_TOKEN_FILE).map_err(|error| failure(plain_io_error(&error)))?;
    let text = String::from_utf8(bytes).map_err(|_| failure("it is not UTF-8".to_owned()))?;
    let line = text.lines().next().unwrap_or_default().trim();
    let (user, secret) = line.split_once(char::is_whitespace).unwrap_or(("", line));
    Token::new(user, secret.trim_start()).map_err(|error| failure(error.to_string()))
}
