//! Fills module variables as a host program would before a launch.
//!
//! The bytes become initialisers in the module's text, so that the compiler and the interpreter
//! start from the same contents. Only a variable declared as bytes without an initialiser can be
//! filled.

use super::{Launch, Symbol};

impl Launch {
    /// The module's text with the symbols' bytes as initialisers.
    ///
    /// # Errors
    ///
    /// A symbol that is not declared in that form, or that is too small.
    pub fn source(&self, module: &str) -> Result<String, String> {
        let mut text = module.to_string();
        for symbol in &self.symbols {
            let (at, size) = place(&text, &symbol.name)?;
            if symbol.bytes.len() > size {
                return Err(format!("{} has {size} bytes, not {}", symbol.name, symbol.bytes.len()));
            }
            text.insert_str(at, &initialiser(symbol));
        }
        Ok(text)
    }
}

fn initialiser(symbol: &Symbol) -> String {
    let bytes: Vec<String> = symbol.bytes.iter().map(u8::to_string).collect();
    format!(" = {{{}}}", bytes.join(", "))
}

/// The position for a variable's initialiser, and the variable's size in bytes.
fn place(text: &str, name: &str) -> Result<(usize, usize), String> {
    let head = format!(".b8 {name}[");
    let missing = || format!("the module declares no bytes {name}[…] without an initialiser");
    let at = text.find(&head).ok_or_else(missing)? + head.len();
    let end = at + text[at..].find(']').ok_or_else(missing)?;
    let size = text[at..end].trim().parse().map_err(|_| missing())?;
    if !text[end + 1..].trim_start().starts_with(';') {
        return Err(missing());
    }
    Ok((end + 1, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(name: &str, bytes: Vec<u8>) -> Launch {
        let symbols = vec![Symbol { name: name.into(), bytes }];
        let (targets, args, tolerance) = (Vec::new(), Vec::new(), Default::default());
        Launch { kernel: "k".into(), grid: [1; 3], block: [1; 3], smem: 0, tolerance, targets, symbols, args }
    }

    #[test]
    fn a_variable_is_filled() {
        let text = ".const .align 4 .b8 ab[8];\n.const .align 4 .b8 b[4];\n.global .b8 c[1] = {3};";
        let filled = ".const .align 4 .b8 ab[8];\n.const .align 4 .b8 b[4] = {1, 2, 255};\n.global .b8 c[1] = {3};";
        assert_eq!(launch("b", vec![1, 2, 255]).source(text), Ok(filled.into()));
        assert_eq!(launch("b", vec![0; 5]).source(text), Err("b has 4 bytes, not 5".into()));
        let none = |name: &str| Err(format!("the module declares no bytes {name}[…] without an initialiser"));
        assert_eq!(launch("c", vec![0]).source(text), none("c"));
        assert_eq!(launch("d", vec![0]).source(text), none("d"));
    }
}
