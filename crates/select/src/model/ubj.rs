//! Reading of UBJSON (draft 12), as far as XGBoost writes it, into JSON values.

use serde_json::{Map, Number, Value};

use super::error::ModelError;

/// Deepest nesting.
const MAX_NESTING: usize = 32;
/// Most values in a file: a dozen arrays of [`super::MAX_NODES`] entries.
const MAX_VALUES: usize = 1 << 20;

/// Reads one value that takes the whole file.
pub(super) fn read(file: &[u8]) -> Result<Value, ModelError> {
    let mut reader = Reader {
        file,
        at: 0,
        values: 0,
    };
    let kind = reader.byte()?;
    let value = reader.value(kind, 0)?;
    if reader.at == file.len() {
        Ok(value)
    } else {
        reader.wrong()
    }
}

struct Reader<'a> {
    file: &'a [u8],
    at: usize,
    values: usize,
}

/// The head of an object or array with its optional type and number of values.
struct Container {
    kind: Option<u8>,
    count: Option<usize>,
}

impl Reader<'_> {
    fn wrong<T>(&self) -> Result<T, ModelError> {
        Err(ModelError::Ubj(self.at))
    }

    fn take(&mut self, count: usize) -> Result<&[u8], ModelError> {
        let end = self.at.checked_add(count);
        let found = end.and_then(|end| self.file.get(self.at..end));
        let found = found.ok_or(ModelError::Ubj(self.at))?;
        self.at += count;
        Ok(found)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ModelError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8, ModelError> {
        self.array().map(|[byte]| byte)
    }

    fn peek(&self) -> Option<u8> {
        self.file.get(self.at).copied()
    }

    fn integer(&mut self, kind: u8) -> Result<Option<i64>, ModelError> {
        Ok(Some(match kind {
            b'i' => i8::from_be_bytes(self.array()?).into(),
            b'U' => u8::from_be_bytes(self.array()?).into(),
            b'I' => i16::from_be_bytes(self.array()?).into(),
            b'l' => i32::from_be_bytes(self.array()?).into(),
            b'L' => i64::from_be_bytes(self.array()?),
            _ => return Ok(None),
        }))
    }

    fn length(&mut self) -> Result<usize, ModelError> {
        let kind = self.byte()?;
        let number = self.integer(kind)?;
        let length = number.and_then(|number| usize::try_from(number).ok());
        length.ok_or(ModelError::Ubj(self.at))
    }

    fn text(&mut self) -> Result<String, ModelError> {
        let length = self.length()?;
        let at = self.at;
        let text = std::str::from_utf8(self.take(length)?);
        text.map(str::to_owned).map_err(|_| ModelError::Ubj(at))
    }

    fn value(&mut self, kind: u8, nesting: usize) -> Result<Value, ModelError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(ModelError::TooLarge("values"));
        }
        if let Some(number) = self.integer(kind)? {
            return Ok(number.into());
        }
        match kind {
            b'd' => Ok(float(f32::from_be_bytes(self.array()?).into())),
            b'D' => Ok(float(f64::from_be_bytes(self.array()?))),
            b'Z' => Ok(Value::Null),
            b'T' => Ok(true.into()),
            b'F' => Ok(false.into()),
            b'S' => self.text().map(Value::from),
            b'C' => self.byte().map(|byte| char::from(byte).to_string().into()),
            b'[' if nesting < MAX_NESTING => self.list(nesting + 1),
            b'{' if nesting < MAX_NESTING => self.object(nesting + 1),
            _ => self.wrong(),
        }
    }

    fn container(&mut self) -> Result<Container, ModelError> {
        let mut kind = None;
        if self.peek() == Some(b'$') {
            self.at += 1;
            kind = Some(self.byte()?);
        }
        if self.peek() == Some(b'#') {
            self.at += 1;
            let count = Some(self.length()?);
            return Ok(Container { kind, count });
        }
        // A type needs a number of values.
        if kind.is_some() {
            return self.wrong();
        }
        Ok(Container { kind, count: None })
    }

    fn list(&mut self, nesting: usize) -> Result<Value, ModelError> {
        let Container { kind, count } = self.container()?;
        let mut values = Vec::new();
        while self.goes_on(count, values.len(), b']') {
            let kind = match kind {
                Some(kind) => kind,
                None => self.byte()?,
            };
            values.push(self.value(kind, nesting)?);
        }
        Ok(Value::Array(values))
    }

    fn object(&mut self, nesting: usize) -> Result<Value, ModelError> {
        let Container { kind, count } = self.container()?;
        let mut fields = Map::new();
        let mut read = 0;
        while self.goes_on(count, read, b'}') {
            let name = self.text()?;
            let kind = match kind {
                Some(kind) => kind,
                None => self.byte()?,
            };
            let value = self.value(kind, nesting)?;
            fields.insert(name, value);
            read += 1;
        }
        Ok(Value::Object(fields))
    }

    /// Whether another value follows; takes the closing byte of a container without a number of values.
    fn goes_on(&mut self, count: Option<usize>, read: usize, close: u8) -> bool {
        match count {
            Some(count) => read < count,
            None if self.peek() == Some(close) => {
                self.at += 1;
                false
            }
            None => true,
        }
    }
}

fn float(number: f64) -> Value {
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}
