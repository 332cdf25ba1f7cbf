//! Parses functions: heads, parameters, directives, prototypes.
//!
//! Each `.entry` or `.func` becomes an entry of `Module::functions`, with its body if it has one. A
//! declaration and a definition of one name share one entry and agree in their parameters.

use super::ast::*;
use super::lexer::Token;
use super::parser::{Parse, Parser};
use super::scope::Body;
use super::variable::Head;
use crate::diag::{Diagnostic, Pos};
use crate::tables::ptx::{DIRECTIVES, Limit, OP_BY_NAME, Op, Space, TypeClass};
use cranelift_entity::PrimaryMap;
use std::sync::Arc;

/// Largest number of parameters of a function.
const MAX_PARAMETERS: usize = 16384;

/// The three dimensions of a directive.
type Triple = [u32; 3];

/// Names of languages that `.language` takes, and the highest number. Source: ptxas 13.5.37.
const LANGUAGES: [&str; 7] = ["UNKNOWN", "SASS", "NVSAL", "PTX", "NVVM", "FORTRAN", "OPTIX"];
const MOST_LANGUAGE: u32 = 10;

impl<'a> Parser<'a> {
    /// `.entry` or `.func`, after its linkage.
    pub fn function(&mut self, linkage: Linkage) -> Parse<()> {
        let keyword = self.next();
        let is_entry = self.text(keyword) == ".entry";
        self.body = Body::default();
        self.body.open();
        let mut directives = Directives::default();
        if self.is_dot(".attribute") {
            self.next();
            self.expect_sign("(")?;
            directives.unified = Some(self.unified()?);
            self.expect_sign(")")?;
        }
        let mut function = Function {
            name: String::new(),
            pos: self.pos(),
            symbol: SymbolId::from_u32(0),
            is_entry,
            linkage,
            results: Vec::new(),
            params: Vec::new(),
            directives: self.no_directives.clone(),
            registers: PrimaryMap::new(),
            labels: PrimaryMap::new(),
            variables: Vec::new(),
            body: None,
            end: Pos::default(),
        };
        if !is_entry && self.is_sign("(") {
            function.results = self.parameters(is_entry)?;
            if function.results.len() > 1 && function.results.iter().any(|result| result.symbol().is_some()) {
                self.error(function.pos, "Multiple return parameters require .register state space");
            }
        }
        let name = self.expect_ident()?;
        function.name = self.text(name).into();
        function.pos = name.pos;
        if self.is_sign("(") {
            function.params = self.parameters(is_entry)?;
        }
        self.check_extents(&function);
        self.inputs = function.params.iter().filter_map(Parameter::symbol).collect();
        self.outputs = function.results.iter().filter_map(Parameter::symbol).collect();
        self.directives(&mut directives, is_entry)?;
        if directives != *self.no_directives {
            function.directives = Arc::new(directives);
        }
        if function.directives.no_return && !function.results.is_empty() {
            let pos = self.pos();
            self.error(pos, format!("Invalid directive '.noreturn' for function '{}'", function.name));
        }
        if is_entry {
            self.check_entry(&function);
        }
        let id = self.declare_function(&mut function, name)?;
        if self.is_sign("{") {
            if linkage == Linkage::Extern {
                let text = format!(
                    "Function definition conflicts with '.extern' declaration for function '{}'",
                    function.name
                );
                let pos = self.pos();
                self.error(pos, text);
            }
            let mut body = self.function_body();
            // A file may have a million of them.
            body.shrink_to_fit();
            function.body = Some(body.into());
            function.end = self.pos();
            // A missing closing brace is possible only at the end of the file, where it has been
            // reported.
            self.accept_sign("}");
        } else {
            function.end = self.expect_sign(";")?.pos;
        }
        let defines = is_entry && function.body.is_some();
        self.finish_function(id, function);
        if defines {
            self.count_entry();
        }
        Ok(())
    }

    /// Counts an entry; behind one too many the rest of the file is not read.
    fn count_entry(&mut self) {
        self.entries += 1;
        let most = Limit::Entries.bytes(|_| true);
        if self.entries > most {
            self.diags.push(Diagnostic::fatal(format!("more than {most} entry functions are too many for one file")));
            self.gave_up = true;
        }
    }

    /// Enters a function's name before its body, so that the body can call it.
    fn declare_function(&mut self, function: &mut Function, name: Token) -> Parse<FunctionId> {
        let text = self.text(name);
        let Some(&symbol) = self.names.get(text) else {
            let id = FunctionId::from_u32(self.module.functions.len() as u32);
            function.symbol = self.new_symbol(text, name.pos, SymbolKind::Function(id));
            self.names.insert(text, function.symbol);
            let registers = self.body.registers.clone();
            return Ok(self.module.functions.push(Function { registers, ..function.clone() }));
        };
        function.symbol = symbol;
        let SymbolKind::Function(id) = self.module.symbols[symbol].kind else {
            return Err(self.error(name.pos, format!("Duplicate definition of function '{text}'")));
        };
        let old = &self.module.functions[id];
        if old.body.is_some() && self.is_sign("{") || old.is_entry != function.is_entry {
            self.error(name.pos, format!("Duplicate definition of function '{text}'"));
        }
        let old = &self.module.functions[id];
        let same = self.shapes(&old.results, &old.registers) == self.shapes(&function.results, &self.body.registers)
            && self.shapes(&old.params, &old.registers) == self.shapes(&function.params, &self.body.registers);
        if !same {
            self.error(name.pos, format!("Inconsistent prototypes of '{text}', parameter types differ"));
        }
        Ok(id)
    }

    /// Sizes that two declarations of a parameter must agree in: bits of a register, or bytes in
    /// memory.
    fn shapes(&self, params: &[Parameter], registers: &PrimaryMap<RegId, Register>) -> Vec<(u32, u64)> {
        let shape = |param: &Parameter| match param {
            Parameter::Register(id) => (registers[*id].ty.bits(), 0),
            Parameter::Memory(id) => match &self.module.symbols[*id].kind {
                SymbolKind::Variable(v) => (0, v.size),
                _ => (0, 0),
            },
        };
        params.iter().map(shape).collect()
    }

    /// Moves the body's declarations into the function and the function into the module.
    fn finish_function(&mut self, id: FunctionId, mut function: Function) {
        let mut body = std::mem::take(&mut self.body);
        function.registers = std::mem::take(&mut body.registers);
        function.registers.shrink_to_fit();
        function.variables = std::mem::take(&mut body.variables);
        let (labels, map, missing) = body.finish_labels();
        for label in missing {
            self.error(label.pos, format!("Unknown symbol '{}'", label.name));
        }
        function.labels = labels;
        for statement in function.body.iter_mut().flatten() {
            statement.remap_labels(&map);
        }
        self.check_labels(&function);
        let old = &mut self.module.functions[id];
        if function.body.is_some() || old.body.is_none() {
            // A definition without its own linkage inherits that of its declaration.
            if function.linkage == Linkage::Internal && old.linkage != Linkage::Extern {
                function.linkage = old.linkage;
            }
            if old.directives.no_return {
                Arc::make_mut(&mut function.directives).no_return = true;
            }
            *old = function;
        }
    }

    /// Checks branch targets: an indexed branch takes a list of targets, every other branch a place
    /// in the code.
    fn check_labels(&mut self, function: &Function) {
        for statement in function.body.iter().flatten() {
            let Statement::Instruction(instruction) = statement else { continue };
            for (i, operand) in instruction.operands.iter().enumerate() {
                let OperandKind::Label(label) = operand.kind else { continue };
                let Some(label) = function.labels.get(label) else { continue };
                let name = instruction.op.name();
                match (instruction.op == Op::BrxIdx, label.targets.is_empty()) {
                    (true, true) => {
                        let what = "Label with '.branchtargets' directive expected";
                        self.error(operand.pos, format!("{what} for argument {i} of instruction '{name}'"));
                    }
                    (false, false) => {
                        self.error(operand.pos, format!("Label expected for argument {i} of instruction '{name}'"));
                    }
                    _ => {}
                }
            }
        }
    }

    /// `(.param … name, …)`
    fn parameters(&mut self, is_entry: bool) -> Parse<Vec<Parameter>> {
        let open = self.expect_sign("(")?;
        let mut params = Vec::new();
        while !self.is_sign(")") || !params.is_empty() {
            let head = self.head()?;
            let name = self.expect_ident()?;
            if is_entry && head.space != Some(Space::Param) {
                let text = format!("Entry parameter '{}' must have .param state space", self.text(name));
                return Err(self.error(name.pos, text));
            }
            if !matches!(head.space, None | Some(Space::Param)) {
                return Err(self.error(head.pos, "State space incorrect for a parameter"));
            }
            params.push(self.parameter(&head, name)?);
            if params.len() > MAX_PARAMETERS {
                return Err(self.error(open.pos, format!("More than {MAX_PARAMETERS} parameters")));
            }
            if !self.accept_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        Ok(params)
    }

    /// Only the last parameter of a device function may be an array of unknown extent.
    fn check_extents(&mut self, function: &Function) {
        let open = |parameter: &Parameter| {
            let symbol = &self.module.symbols[parameter.symbol()?];
            let SymbolKind::Variable(v) = &symbol.kind else { return None };
            v.dimensions.contains(&None).then_some(symbol.pos)
        };
        let before = &function.params[..function.params.len().saturating_sub(1)];
        let found = [
            (&function.results[..], "Output parameter cannot be an incomplete array."),
            (before, "Only the last input parameter can be an incomplete array."),
            (
                if function.is_entry { &function.params[..] } else { &[] },
                "Parameter to entry function cannot be an incomplete array.",
            ),
        ];
        let errors: Vec<_> =
            found.iter().filter_map(|(list, text)| Some((list.iter().find_map(open)?, *text))).collect();
        for (pos, text) in errors {
            self.error(pos, text);
        }
    }

    fn parameter(&mut self, head: &Head, name: Token) -> Parse<Parameter> {
        let text = self.text(name);
        if head.space.is_none() {
            self.check_register(head);
            let register = Register { name: text.into(), ty: head.ty, vector: head.vector, pos: name.pos };
            let id = if text == "_" {
                Some(self.body.registers.push(register))
            } else {
                self.body.declare_register(text, register)
            };
            return match id {
                Some(id) => Ok(Parameter::Register(id)),
                None => Err(self.error(name.pos, format!("Duplicate definition of variable '{text}'"))),
            };
        }
        let variable = self.layout(head, name)?;
        let symbol = self.new_symbol(text, name.pos, SymbolKind::Variable(Box::new(variable)));
        if text != "_" && !self.body.declare_symbol(text, symbol) {
            self.error(name.pos, format!("Duplicate definition of variable '{text}'"));
        }
        Ok(Parameter::Memory(symbol))
    }

    /// Directives between a function's head and its body.
    fn directives(&mut self, d: &mut Directives, is_entry: bool) -> Parse<()> {
        while self.peek().tok == super::lexer::Tok::Dot {
            let pos = self.pos();
            let text = self.text(self.peek());
            let stands = DIRECTIVES.get(text).is_some_and(|info| if is_entry { info.entry } else { info.function });
            if text == ".pragma" && is_entry {
                d.pragmas.push(self.pragma(true)?);
                continue;
            }
            if OP_BY_NAME.get(text) == Some(&None) {
                return Err(self.error(pos, format!("Directive '{text}' is not supported yet")));
            }
            if !stands {
                return Err(self.unexpected());
            }
            self.next();
            match text {
                ".maxntid" => d.max_threads = Some(self.triple(text)?),
                ".reqntid" => d.required_threads = Some(self.triple(text)?),
                ".reqnctapercluster" => d.required_cluster = Some(self.triple(text)?),
                ".minnctapersm" => d.min_blocks_per_sm = Some(self.positive(text)?),
                ".maxnctapersm" => d.max_blocks_per_sm = Some(self.positive(text)?),
                ".maxnreg" => d.max_registers = Some(self.positive(text)?),
                ".maxclusterrank" => d.max_cluster_rank = Some(self.positive(text)?),
                ".noreturn" => d.no_return = true,
                ".explicitcluster" => d.explicit_cluster = true,
                ".blocksareclusters" => d.blocks_are_clusters = true,
                ".language" => self.language()?,
                ".abi_preserve" => d.abi_preserve = Some(self.plain()?),
                ".abi_preserve_control" => d.abi_preserve_control = Some(self.plain()?),
                _ => {
                    self.at -= 1;
                    return Err(self.unexpected());
                }
            }
            self.need(super::requirements::Subject::Directive(text), pos);
            self.check_gone_directive(text, pos);
            let conflict = match text {
                ".maxntid" | ".reqntid" if d.max_threads.is_some() && d.required_threads.is_some() => {
                    ".maxntid and .reqntid"
                }
                ".reqnctapercluster" | ".maxclusterrank"
                    if d.required_cluster.is_some() && d.max_cluster_rank.is_some() =>
                {
                    ".reqnctapercluster and .maxclusterrank"
                }
                _ => continue,
            };
            self.error(pos, format!("Conflicting directives: {conflict} cannot both be specified"));
        }
        Ok(())
    }

    /// Reports a directive that the file's version has removed (error) or deprecated (warning).
    fn check_gone_directive(&mut self, text: &str, pos: Pos) {
        let Some([deprecated, gone]) = DIRECTIVES.get(text).and_then(|info| info.gone) else { return };
        if self.module.version >= gone {
            let since = format!("not supported as of PTX version {}.{}", gone.0, gone.1);
            self.error(pos, format!("Deprecated feature: '{text} directive' {since}"));
        } else if self.module.version >= deprecated {
            let since = format!("deprecated in PTX version {}.{}, will be ignored.", deprecated.0, deprecated.1);
            self.diags.push(Diagnostic::warning(pos, format!("{text} directive {since}")));
        }
    }

    /// Checks an entry's head as a whole; the cursor is behind its directives.
    fn check_entry(&mut self, function: &Function) {
        let pos = self.pos();
        let d = &function.directives;
        if d.blocks_are_clusters && (d.required_threads.is_none() || d.required_cluster.is_none()) {
            let needed = ".reqntid and .reqnctapercluster directive(s) required";
            self.error(pos, format!("{needed} for directive '.blocksareclusters'"));
        }
        if d.min_blocks_per_sm.is_some() && d.max_threads.is_none() && d.required_threads.is_none() {
            let text = ".minnctapersm is ignored when neither .maxntid nor .reqntid is specified.";
            self.diags.push(Diagnostic::warning(pos, text));
        }
        let mut bytes = 0u64;
        for symbol in function.params.iter().filter_map(Parameter::symbol) {
            if let SymbolKind::Variable(v) = &self.module.symbols[symbol].kind {
                bytes = bytes.next_multiple_of(v.align.max(1)).saturating_add(v.size);
            }
        }
        let most = Limit::EntryParameters.bytes(|needs| self.has(needs));
        if bytes > most {
            let name = &function.name;
            let text =
                format!("Entry function '{name}' uses too much parameter space ({bytes:#x} bytes, {most:#x} max).");
            self.error(pos, text);
            let older = Limit::EntryParameters.bytes(|needs| needs != Limit::EntryParameters.needs());
            let what = format!("Kernel parameter size larger than {older} bytes");
            self.need(super::requirements::Subject::Feature(&what, Limit::EntryParameters.needs()), pos);
        }
    }

    /// The language that the source was written in, by name or number: checked, and without effect
    /// on code.
    fn language(&mut self) -> Parse<()> {
        let pos = self.pos();
        if self.peek().tok == super::lexer::Tok::Str {
            let name = self.expect_string()?.to_string();
            if !LANGUAGES.contains(&name.to_ascii_uppercase().as_str()) {
                self.error(pos, format!("Parsing error near '{name}': Invalid language name"));
            }
            return Ok(());
        }
        let value = self.plain()?;
        if value > MOST_LANGUAGE {
            let range = format!("out of range, expected to be in range [0..{MOST_LANGUAGE}]");
            self.error(pos, format!("Value '{value}' for 'directive .language' {range}"));
        }
        Ok(())
    }

    fn positive(&mut self, directive: &str) -> Parse<u32> {
        let pos = self.pos();
        let value = self.plain()?;
        if value == 0 {
            let name = directive.trim_start_matches('.');
            self.error(pos, format!("Positive non-zero value expected for {name}"));
        }
        Ok(value)
    }

    /// One to three positive numbers; missing ones are 1.
    fn triple(&mut self, directive: &str) -> Parse<Triple> {
        let mut triple = [1; 3];
        triple[0] = self.positive(directive)?;
        for slot in &mut triple[1..] {
            if !self.accept_sign(",") {
                break;
            }
            *slot = self.positive(directive)?;
        }
        Ok(triple)
    }

    /// `.callprototype (results) _ (params) directives;`
    pub fn prototype(&mut self) -> Parse<Prototype> {
        self.next();
        let pos = self.pos();
        let results = if self.is_sign("(") { self.prototype_parameters()? } else { Vec::new() };
        if results.len() > 1 && results.iter().any(|result| !result.in_register) {
            self.error(pos, "Multiple return parameters require .register state space");
        }
        self.expect_ident()?;
        let params = if self.is_sign("(") { self.prototype_parameters()? } else { Vec::new() };
        let mut directives = Directives::default();
        self.directives(&mut directives, false)?;
        self.expect_sign(";")?;
        let Directives { no_return, abi_preserve, abi_preserve_control, .. } = directives;
        Ok(Prototype { results, params, no_return, abi_preserve, abi_preserve_control })
    }

    fn prototype_parameters(&mut self) -> Parse<Vec<PrototypeParameter>> {
        self.expect_sign("(")?;
        let mut params = Vec::new();
        while !self.is_sign(")") || !params.is_empty() {
            let head = self.head()?;
            let name = self.expect_ident()?;
            let (ty, in_register) = (head.ty, head.space.is_none());
            if in_register {
                let size = u64::from(ty.bits().div_ceil(8)) * u64::from(head.vector.max(1));
                params.push(PrototypeParameter { in_register, ty, vector: head.vector, size, align: size });
            } else if ty.class() != TypeClass::Predicate {
                let v = self.layout(&head, name)?;
                params.push(PrototypeParameter { in_register, ty, vector: 1, size: v.size, align: v.align });
            }
            if !self.accept_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        Ok(params)
    }
}
