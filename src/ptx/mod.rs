//! The PTX front end: lexer, parser, checks.
//!
//! It turns PTX text into [`ast::Module`], with every name resolved and every instruction matched
//! to a row of `tables/ptx`, and diagnostics. Any input gets an answer without a panic, in time
//! linear in its length. A module is returned if and only if there is no error.

mod arguments;
pub mod ast;
mod body;
mod call;
mod constant;
mod family;
mod fields;
mod function;
mod hash;
mod initializer;
mod instruction;
mod legality;
mod lexer;
mod matching;
mod module;
mod operand;
mod parser;
mod ranges;
mod requirements;
mod scope;
mod sum;
#[cfg(test)]
mod tests;
mod variable;

use crate::diag::{Diagnostic, Severity};
use crate::tables::ptx::Limit;
use ast::{Module, Target};
use cranelift_entity::PrimaryMap;
use lexer::Lexer;
use parser::Parser;
pub use requirements::pragma_name;

/// Parses a PTX file. The module is `None` if and only if a diagnostic is an error.
pub fn parse(source: &str) -> (Option<Module>, Vec<Diagnostic>) {
    read(&[source], true)
}

/// Parses several PTX files as one module; later files see the declarations of earlier ones. Each
/// diagnostic has the index of its file.
pub fn parse_all(sources: &[&str]) -> (Option<Module>, Vec<Diagnostic>) {
    read(sources, true)
}

/// Parses a PTX file given as bytes; non-ASCII bytes are errors.
pub fn parse_bytes(source: &[u8]) -> (Option<Module>, Vec<Diagnostic>) {
    parse(&String::from_utf8_lossy(source))
}

/// Checks only the syntax of a PTX file, without matching instructions against the tables.
pub fn check_syntax(source: &str) -> Vec<Diagnostic> {
    read(&[source], false).1
}

fn read(sources: &[&str], check_rows: bool) -> (Option<Module>, Vec<Diagnostic>) {
    let mut parser = Parser {
        source: "",
        lexer: Lexer::new(""),
        at: 0,
        before: 0,
        diags: Vec::new(),
        module: empty(),
        names: Default::default(),
        families: Default::default(),
        body: Default::default(),
        cut_off: false,
        gave_up: false,
        check_rows,
        refused: false,
        sums: Vec::new(),
        target_row: None,
        entries: 0,
        locations: Default::default(),
        no_directives: Default::default(),
        operations: Default::default(),
        sorted: Default::default(),
        inlined_names: Default::default(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        is_sized: false,
        is_narrow: false,
    };
    let mut all = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        if source.len() as u64 > Limit::Source.bytes(|_| true) {
            return (None, vec![Diagnostic::fatal("PTX input is larger than 1 GiB")]);
        }
        (parser.source, parser.lexer, parser.at) = (source, Lexer::new(source), 0);
        // Unterminated constructs of the previous file have been reported by the lexer.
        (parser.cut_off, parser.gave_up) = (false, false);
        parser.read_on();
        let before = parser.module.target.clone();
        let row = parser.target_row;
        parser.file();
        // Of several files, the highest target wins.
        if row.is_some_and(|row| parser.target_row.is_none_or(|new| new.sm < row.sm)) {
            parser.module.target = before;
        }
        parser.diags.truncate(parser::MAX_ERRORS + 1);
        crate::sorted::by_key(&mut parser.diags, |d| d.pos);
        all.extend(parser.diags.drain(..).map(|d| Diagnostic { file: file as u32, ..d }));
    }
    all.extend(unresolved_names(&parser));
    all.extend(missing_debug(&parser.module).filter(|_| check_rows));
    let good = all.iter().all(|d| d.severity == Severity::Warning);
    (good.then_some(parser.module), all)
}

/// The section that `.target …, debug` requires, and the name for lines of the older syntax.
const DEBUG_SECTIONS: [&str; 2] = [".debug_info", "@@DWARF"];

/// The error for a module that has `.target debug` but no debug information.
fn missing_debug(module: &Module) -> Option<Diagnostic> {
    let is_debug = |section: &ast::DebugSection| DEBUG_SECTIONS.contains(&section.name.as_str());
    let missing = module.target.debug && !module.debug_sections.iter().any(is_debug);
    let text = "Debug information not found in presence of .target debug";
    missing.then(|| Diagnostic { severity: Severity::Error, ..Diagnostic::note(text) })
}

/// Errors for `function_name` labels that no debug section defines.
fn unresolved_names(parser: &Parser) -> Vec<Diagnostic> {
    let sections = &parser.module.debug_sections;
    let named = |name: &str| {
        sections.iter().any(|s| s.name == name)
            || sections
                .iter()
                .flat_map(|s| &s.lines)
                .any(|l| l.split_once(':').is_some_and(|(label, _)| label.trim() == name))
    };
    let missing = parser.inlined_names.iter().filter(|name| !named(name));
    let text = |name: &String| format!("Unresolved label '{name}' used in function_name attribute.");
    missing.map(|name| Diagnostic { severity: Severity::Error, ..Diagnostic::note(text(name)) }).collect()
}

fn empty() -> Module {
    Module {
        version: (0, 0),
        target: Target {
            name: String::new(),
            pos: Default::default(),
            independent_textures: false,
            debug: false,
            map_f64_to_f32: false,
        },
        address_size: 64,
        narrow_address: None,
        symbols: PrimaryMap::new(),
        globals: Vec::new(),
        functions: PrimaryMap::new(),
        files: Vec::new(),
        debug_sections: Vec::new(),
        pragmas: Vec::new(),
        aliases: Vec::new(),
    }
}
