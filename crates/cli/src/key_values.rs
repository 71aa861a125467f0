//! Flags that consist of keys and values: `rate=10mbit,loss=ge:10%,60%@3ms`.

use thiserror::Error;

/// A text that does not begin with one of the keys.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("'{part}' is no property here: write {known}=")]
pub struct UnknownKey {
    part: String,
    known: String,
}

/// The keys and values of `input`. A part without one of the keys belongs to the value before it: values such as
/// `ge:10%,60%@3ms` have commas of their own.
///
/// # Errors
///
/// The first part has none of the keys.
pub fn key_values(
    keys: &[&'static str],
    input: &str,
) -> Result<Vec<(&'static str, String)>, UnknownKey> {
    let mut settings: Vec<(&'static str, String)> = Vec::new();
    for part in input.split(',').map(str::trim) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let key = keys.iter().find(|key| **key == name.trim());
        match (key, settings.last_mut()) {
            (Some(key), _) => settings.push((key, value.to_owned())),
            (None, Some((_, before))) => {
                before.push(',');
                before.push_str(part);
            }
            (None, None) => {
                return Err(UnknownKey {
                    part: part.to_owned(),
                    known: keys.join("=, "),
                });
            }
        }
    }
    Ok(settings)
}
