//! Names of certificates as text, one name a text (RFC 4514, in the order of the certificate).

use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::x509::X509Name;

/// The name as `CN=alice, O=Example`; empty for a name without attributes, `None` if a value is no text. Characters of
/// values that separate attributes elsewhere have a `\` before them, so that no value reads as a further attribute.
pub(super) fn distinguished_name(name: &X509Name<'_>) -> Option<String> {
    let registry = oid_registry();
    let mut text = String::new();
    for set in name.iter() {
        for (nth, attribute) in set.iter().enumerate() {
            if !text.is_empty() {
                text += if nth == 0 { ", " } else { " + " };
            }
            let kind = attribute.attr_type();
            match oid2abbrev(kind, registry) {
                Ok(name) => text += name,
                Err(_) => text += &kind.to_id_string(),
            }
            text.push('=');
            push_escaped(&mut text, attribute.as_str().ok()?);
        }
    }
    Some(text)
}

fn push_escaped(text: &mut String, value: &str) {
    let last = value.chars().count().saturating_sub(1);
    for (at, character) in value.chars().enumerate() {
        let at_edge =
            (at == 0 && matches!(character, ' ' | '#')) || (at == last && character == ' ');
        if at_edge || matches!(character, ',' | '+' | '=' | '"' | '\\' | '<' | '>' | ';') {
            text.push('\\');
        }
        if character.is_control() {
            // One line a user in lists and logs.
            text.extend(character.escape_unicode());
        } else {
            text.push(character);
        }
    }
}
