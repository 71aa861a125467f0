//! Names of certificates as text, one name a text (RFC 4514, in the order of the certificate).

use std::fmt::Write as _;

use x509_parser::asn1_rs::ToDer as _;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::x509::X509Name;

/// The name as `CN=alice, O=Example`; empty for a name without attributes. Characters of values that separate attributes
/// elsewhere have a `\` before them, so that no value reads as a further attribute. Values of the old types of strings, and
/// what is no text, are `#` and their DER in hexadecimal. `None` if a value can't be written.
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
            if let Ok(value) = attribute.as_str() {
                push_escaped(&mut text, value);
            } else {
                text.push('#');
                for byte in attribute.attr_value().to_der_vec().ok()? {
                    let _ = write!(text, "{byte:02x}");
                }
            }
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
