//! `rows.parquet`: rows in columnar form, with the columns of `rows.csv`.

use std::path::PathBuf;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::{Results, StoreError, Table, names, whole_file};

impl Results {
    /// Writes `rows.parquet` and returns its path.
    pub fn write_parquet(&self) -> Result<PathBuf, StoreError> {
        let path = self.folder().join(names::PARQUET);
        let content = encode(&self.table()?)
            .map_err(|error| StoreError::io(&path)(std::io::Error::other(error)))?;
        whole_file::write(&path, &content)?;
        Ok(path)
    }
}

fn encode(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema(table)?, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let rows = &table.rows;
    let whole: [Vec<i64>; 3] = [
        rows.iter()
            .map(|row| (row.run.case as u64).cast_signed())
            .collect(),
        rows.iter().map(|row| i64::from(row.run.repeat)).collect(),
        // Parquet stores unsigned numbers in the bits of signed ones.
        rows.iter().map(|row| row.run.seed.cast_signed()).collect(),
    ];
    for values in whole {
        column::<Int64Type>(&mut group, &values, None)?;
    }
    for axis in 0..table.axes.len() {
        let labels: Vec<ByteArray> = rows
            .iter()
            .map(|row| ByteArray::from(row.labels[axis].as_str()))
            .collect();
        column::<ByteArrayType>(&mut group, &labels, None)?;
    }
    for measure in 0..table.measures.len() {
        let values = rows.iter().map(|row| row.values[measure]);
        let present: Vec<f64> = values.clone().flatten().collect();
        let levels: Vec<i16> = values.map(|value| i16::from(value.is_some())).collect();
        column::<DoubleType>(&mut group, &present, Some(&levels))?;
    }
    group.close()?;
    writer.into_inner()
}

/// Writes the next column. `levels` are 1 where there is a value; without them there is one in every
/// row.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("one column too many".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

fn schema(table: &Table) -> Result<TypePtr, ParquetError> {
    let unsigned = |bits| Some(LogicalType::integer(bits, false));
    let field = |name: &str, kind, repetition, logical| {
        Type::primitive_type_builder(name, kind)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    };
    let mut fields = Vec::new();
    for name in ["case", "repeat", "seed"] {
        fields.push(field(
            name,
            Physical::INT64,
            Repetition::REQUIRED,
            unsigned(64),
        )?);
    }
    for name in &table.axes {
        let text = Some(LogicalType::String);
        fields.push(field(
            name,
            Physical::BYTE_ARRAY,
            Repetition::REQUIRED,
            text,
        )?);
    }
    for name in &table.measures {
        fields.push(field(name, Physical::DOUBLE, Repetition::OPTIONAL, None)?);
    }
    let group = Type::group_type_builder("rows").with_fields(fields);
    group.build().map(Arc::new)
}
