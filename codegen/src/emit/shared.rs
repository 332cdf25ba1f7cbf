//! Values that many rows of a generated file have in common, as constants: the compiler reads and
//! checks each of them once.

use std::collections::HashMap;
use std::fmt::Write;

/// Distinct values of one type, each a constant whose name is a prefix and a number.
pub struct Shared {
    prefix: &'static str,
    ty: &'static str,
    values: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Shared {
    /// No values yet, of a type as it is written in Rust.
    pub fn new(prefix: &'static str, ty: &'static str) -> Shared {
        Shared { prefix, ty, values: Vec::new(), numbers: HashMap::new() }
    }

    /// The name of the constant for an expression.
    pub fn name(&mut self, value: String) -> String {
        let next = self.values.len();
        let number = *self.numbers.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            next
        });
        format!("{}{number}", self.prefix)
    }

    /// The name of the constant for a slice of values.
    pub fn list(&mut self, values: &[String]) -> String {
        self.name(format!("&[{}]", values.join(", ")))
    }

    /// The constants, one a line, in the order of first mention.
    pub fn items(&self) -> String {
        let mut text = String::new();
        for (number, value) in self.values.iter().enumerate() {
            let _ = writeln!(text, "const {}{number}: {} = {value};", self.prefix, self.ty);
        }
        text
    }
}
