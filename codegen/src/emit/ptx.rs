//! Emits `ptx.rs`: operations, types, modifier groups and the struct of all modifiers, special
//! registers, forms, requirements.

use super::shared::Shared;
use super::{camel, phf_map, plain_enum};
use crate::model::Model;
use crate::model::ptx::{Arg, ArgType, Form, Group, Ptx, version};
use crate::model::ranges::Span;
use crate::rows::ptx::GroupKind;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let ptx = &model.ptx;
    let (enums, groups, modifiers) = (enums(ptx), groups(ptx), modifiers(ptx));
    let (types, specials, forms) = (types(ptx), specials(ptx), forms(ptx));
    let (requirements, ranges, directives, maps) = (requirements(ptx), ranges(ptx), directives(ptx), maps(ptx));
    let fields = fields(model);
    quote! { #enums #groups #modifiers #types #specials #forms #requirements #ranges #directives #fields #maps }
}

/// A PTX name as the identifier of a variant: `shared::cta` is `SharedCta`, and `2d` is `D2d`.
fn variant(text: &str) -> String {
    let digit = if text.starts_with(|c: char| c.is_ascii_digit()) { "d" } else { "" };
    camel(&[digit, text].concat().replace("::", "_"))
}

/// The identifier of the variant for a PTX name.
pub fn ident(text: &str) -> Ident {
    format_ident!("{}", variant(text))
}

fn variants<'a>(names: impl Iterator<Item = &'a String>) -> Vec<(String, String)> {
    names.map(|n| (variant(n), n.clone())).collect()
}

fn enums(ptx: &Ptx) -> TokenStream {
    let op = plain_enum("Op", "A PTX operation.", &variants(ptx.operations.iter().map(|o| &o.op)));
    let ty = plain_enum("ScalarType", "A type.", &variants(ptx.types.iter().map(|t| &t.name)));
    let special = plain_enum(
        "SpecialRegister",
        "A special register; the name is without `%`.",
        &variants(ptx.specials.iter().map(|s| &s.name)),
    );
    let role = plain_enum("Role", "What may stand as an operand.", &variants(ptx.roles.iter().map(|r| &r.role)));
    let group = plain_enum("Group", "A modifier group.", &variants(ptx.groups.iter().map(|g| &g.row.group)));
    quote! { #op #ty #special #role #group }
}

/// One enum for each group with several texts.
fn groups(ptx: &Ptx) -> TokenStream {
    let choices = ptx.groups.iter().filter(|g| g.row.kind == GroupKind::Choice);
    let enums = choices.map(|g| {
        let texts = variants(g.texts.iter().map(|t| &t.text));
        plain_enum(&variant(&g.row.group), &format!("Modifier group: {}.", g.row.doc), &texts)
    });
    quote! { #(#enums)* }
}

/// The struct with one field for each group, and access to the fields by group.
fn modifiers(ptx: &Ptx) -> TokenStream {
    let fields = ptx.groups.iter().map(|g| {
        let (field, ty, doc) = (format_ident!("{}", g.row.group), field_type(g), &g.row.doc);
        quote! { #[doc = #doc] pub #field: #ty }
    });
    let gets = ptx.groups.iter().map(|g| {
        let (field, group) = (format_ident!("{}", g.row.group), ident(&g.row.group));
        match g.row.kind {
            GroupKind::Flag => quote! { Group::#group => self.#field.then_some(0) },
            GroupKind::Choice => quote! { Group::#group => self.#field.map(|v| v as u8) },
        }
    });
    let sets = ptx.groups.iter().map(|g| {
        let (field, group) = (format_ident!("{}", g.row.group), ident(&g.row.group));
        match g.row.kind {
            GroupKind::Flag => quote! { Group::#group => self.#field = true },
            GroupKind::Choice => quote! { Group::#group => self.#field = #group::ALL.get(usize::from(value)).copied() },
        }
    });
    let texts = ptx.groups.iter().map(|g| {
        let (names, twice) = (g.texts.iter().map(|t| &t.text), &g.row.twice);
        let (missing, illegal, wrong) = (&g.row.missing, &g.row.illegal, &g.row.wrong);
        let (first, again) = (g.texts_that(|t| t.first), g.texts_that(|t| t.again));
        let before = match g.row.before.as_str() {
            "" => quote!(None),
            group => {
                let group = ident(group);
                quote!(Some(Group::#group))
            }
        };
        quote! { GroupInfo {
            texts: &[#(#names),*], first: #first, again: #again, before: #before,
            missing: #missing, illegal: #illegal, wrong: #wrong, twice: #twice,
        } }
    });
    let count = ptx.groups.len();
    quote! {
        /// The modifiers of an instruction, one field for each group.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Modifiers { #(#fields),* }
        impl Modifiers {
            /// The index of the text that is set in a group, if any.
            pub fn get(&self, group: Group) -> Option<u8> {
                match group { #(#gets),* }
            }
            /// Sets a group to one of its texts.
            pub fn set(&mut self, group: Group, value: u8) {
                match group { #(#sets),* }
            }
        }
        /// Facts of each group, by [`Group`].
        pub static GROUPS: [GroupInfo; #count] = [#(#texts),*];
    }
}

fn field_type(group: &Group) -> TokenStream {
    match group.row.kind {
        GroupKind::Flag => quote!(bool),
        GroupKind::Choice => {
            let ty = ident(&group.row.group);
            quote!(Option<#ty>)
        }
    }
}

fn types(ptx: &Ptx) -> TokenStream {
    let rows = ptx.types.iter().map(|t| {
        let (bits, class) = (t.bits, format_ident!("{}", format!("{:?}", t.class)));
        let declared = pair(&t.ptx);
        quote! { TypeInfo { bits: #bits, class: TypeClass::#class, declared: #declared } }
    });
    let count = ptx.types.len();
    quote! {
        /// Facts of each type, by [`ScalarType`].
        pub static TYPES: [TypeInfo; #count] = [#(#rows),*];
    }
}

fn pair(text: &str) -> TokenStream {
    let (major, minor) = version(text).unwrap_or_default();
    quote!((#major, #minor))
}

fn specials(ptx: &Ptx) -> TokenStream {
    let rows = ptx.specials.iter().map(|s| {
        let (ty, least, vector, needs, sm) = (ident(&s.ty), s.least, s.vector.max(1), pair(&s.ptx), s.sm);
        quote! { SpecialInfo { ty: ScalarType::#ty, least: #least, vector: #vector, needs: Needs { ptx: #needs, sm: #sm } } }
    });
    let count = ptx.specials.len();
    quote! {
        /// Facts of each special register, by [`SpecialRegister`].
        pub static SPECIALS: [SpecialInfo; #count] = [#(#rows),*];
    }
}

fn forms(ptx: &Ptx) -> TokenStream {
    let mut lists = Lists::new();
    let rows: Vec<_> = ptx.forms.iter().map(|f| form(ptx, f, &mut lists)).collect();
    let lists = [lists.rules, lists.rule_lists, lists.types, lists.args, lists.arg_lists];
    let lists: TokenStream = lists.iter().map(Shared::items).collect::<String>().parse().unwrap_or_default();
    let count = ptx.forms.len();
    let ranges = (0..ptx.operations.len()).map(|op| range(ptx.forms.iter().map(|f| f.op), op));
    let ops = ptx.operations.len();
    quote! {
        #lists
        /// The forms of instructions, sorted by operation.
        pub static FORMS: [Form; #count] = [#(#rows),*];
        /// Range in [`FORMS`] of each operation.
        static FORMS_OF: [(u16, u16); #ops] = [#(#ranges),*];
    }
}

/// Range of each operation's rows in a list sorted by operation.
fn range(ops: impl Iterator<Item = usize> + Clone, op: usize) -> TokenStream {
    let start = ops.clone().filter(|o| *o < op).count() as u16;
    let end = start + ops.filter(|o| *o == op).count() as u16;
    quote!((#start, #end))
}

/// What the forms have in common.
struct Lists {
    rules: Shared,
    rule_lists: Shared,
    types: Shared,
    args: Shared,
    arg_lists: Shared,
}

impl Lists {
    fn new() -> Lists {
        Lists {
            rules: Shared::new("RULE_", "Rule"),
            rule_lists: Shared::new("RULES_", "&[Rule]"),
            types: Shared::new("TYPES_", "&[u64]"),
            args: Shared::new("ARG_", "Arg"),
            arg_lists: Shared::new("ARGS_", "&[Arg]"),
        }
    }
}

fn form(ptx: &Ptx, form: &Form, lists: &mut Lists) -> TokenStream {
    let op = ident(&ptx.operations[form.op].op);
    let rules = form.rules.iter().map(|r| {
        let (group, mask, required) = (ident(&ptx.groups[r.group].row.group), r.mask, r.required);
        lists.rules.name(quote! { Rule { group: Group::#group, mask: #mask, required: #required } }.to_string())
    });
    let rules = format_ident!("{}", lists.rule_lists.list(&rules.collect::<Vec<_>>()));
    let types = form.types.iter().map(|mask| format!("{mask:#x}"));
    let types = format_ident!("{}", lists.types.list(&types.collect::<Vec<_>>()));
    let args = form.args.iter().map(|a| lists.args.name(arg(ptx, a).to_string()));
    let args = format_ident!("{}", lists.arg_lists.list(&args.collect::<Vec<_>>()));
    let ((major, minor), sm, refused) = (form.ptx, form.sm, &form.refused);
    let on = match form.on {
        Some(mask) => quote!(Some(#mask)),
        None => quote!(None),
    };
    let whole = match form.whole {
        Some(index) => quote!(Some(#index)),
        None => quote!(None),
    };
    quote! { Form {
        op: Op::#op, rules: #rules, types: #types, args: #args, whole: #whole,
        needs: Needs { ptx: (#major, #minor), sm: #sm }, on: #on, refused: #refused,
    } }
}

fn arg(ptx: &Ptx, arg: &Arg) -> TokenStream {
    let (role, optional) = (ident(&ptx.roles[arg.role].role), arg.optional);
    let (count, by_shape) = (arg.count, arg.by_shape);
    let ty = match &arg.ty {
        ArgType::None => quote!(ArgType::Untyped),
        ArgType::Wide => quote!(ArgType::Wide),
        ArgType::Suffix(n) => quote!(ArgType::Suffix(#n)),
        ArgType::Fixed(ty) => {
            let ty = ident(&ptx.types[*ty].name);
            quote!(ArgType::Fixed(ScalarType::#ty))
        }
    };
    quote! { Arg { role: Role::#role, ty: #ty, count: #count, by_shape: #by_shape, optional: #optional } }
}

fn requirements(ptx: &Ptx) -> TokenStream {
    let rows = ptx.requirements.iter().map(|r| {
        let row = &ptx.requirement_rows[r.row];
        let text = match r.text {
            None => quote!(None),
            Some((group, i)) => {
                let (group, i) = (ident(&ptx.groups[group].row.group), i as u8);
                quote!(Some((Group::#group, #i)))
            }
        };
        let (types, needs, sm, says) = (r.types, pair(&row.ptx), row.sm, &row.says);
        quote! { Requirement { text: #text, types: #types, needs: Needs { ptx: #needs, sm: #sm }, says: #says } }
    });
    let gone = ptx.operations.iter().map(|o| match &o.gone {
        None => quote!(None),
        Some((version, sm)) => {
            let version = pair(version);
            quote!(Some(Needs { ptx: #version, sm: #sm }))
        }
    });
    let wide = ptx.operations.iter().map(|o| o.wide);
    let isa = ptx.operations.iter().map(|o| {
        let (isa, integers) = (o.isa, o.isa.max(o.isa_integers));
        quote!((#isa, #integers))
    });
    let maps = ptx.operations.iter().map(|o| o.maps);
    let tensor_memory = ptx.operations.iter().map(|o| o.tensor_memory);
    let fragments = ptx.operations.iter().map(|o| o.fragments);
    let (count, ops) = (ptx.requirements.len(), ptx.operations.len());
    let ranges = (0..ops).map(|op| range(ptx.requirements.iter().map(|r| r.op), op));
    quote! {
        /// The requirements of modifiers and types, sorted by operation.
        pub static REQUIREMENTS: [Requirement; #count] = [#(#rows),*];
        /// Range in [`REQUIREMENTS`] of each operation.
        static REQUIREMENTS_OF: [(u16, u16); #ops] = [#(#ranges),*];
        /// Version and target from which on a deprecated operation is removed.
        static GONE: [Option<Needs>; #ops] = [#(#gone),*];
        /// Whether the address of each operation in generic or global space has 64 bits.
        static WIDE: [bool; #ops] = [#(#wide),*];
        /// The ISA class of each operation, and with integers in tensor memory.
        static ISA: [(u8, u8); #ops] = [#(#isa),*];
        /// How each operation uses tensor maps.
        static MAPS: [u8; #ops] = [#(#maps),*];
        /// Whether each operation is about tensor memory.
        static TENSOR_MEMORY: [bool; #ops] = [#(#tensor_memory),*];
        /// Whether each operation is about matrices in an order of the target's own.
        static FRAGMENTS: [bool; #ops] = [#(#fragments),*];
    }
}

fn ranges(ptx: &Ptx) -> TokenStream {
    let rows = ptx.ranges.iter().map(|(_, row)| {
        let row = &*ptx.range_rows[*row];
        let (arg, says) = (row.arg, &row.says);
        let with = row.words().into_iter().map(|words| quote! { &[#(#words),*] });
        let is = row.spans().unwrap_or_default().into_iter().map(|span| match span {
            Span::Integers { low, high, step } => quote! { Span::Integers { low: #low, high: #high, step: #step } },
            Span::UpTo { low, arg } => quote! { Span::UpTo { low: #low, arg: #arg } },
            Span::Reals { above, high } => quote! { Span::Reals { above: #above, high: #high } },
        });
        quote! { ArgRange { arg: #arg, with: &[#(#with),*], is: &[#(#is),*], says: #says } }
    });
    let (count, ops) = (ptx.ranges.len(), ptx.operations.len());
    let places = (0..ops).map(|op| range(ptx.ranges.iter().map(|r| r.0), op));
    let mut names: Vec<&str> = ptx.limits.iter().map(|l| l.limit.as_str()).collect();
    names.dedup();
    let variants: Vec<_> = names.iter().map(|name| (camel(name), name.to_string())).collect();
    let limit = plain_enum("Limit", "A greatest size.", &variants);
    let limits = ptx.limits.iter().map(|l| {
        let (name, value, needs, sm) = (ident(&l.limit), l.value, pair(&l.ptx), l.sm);
        quote! { (Limit::#name, #value, Needs { ptx: #needs, sm: #sm }) }
    });
    let many = ptx.limits.len();
    quote! {
        /// The ranges of constant operands, sorted by operation.
        pub static RANGES: [ArgRange; #count] = [#(#rows),*];
        /// Range in [`RANGES`] of each operation.
        static RANGES_OF: [(u16, u16); #ops] = [#(#places),*];
        #limit
        /// Limits on sizes, and the version and target that each requires.
        static LIMITS: [(Limit, u64, Needs); #many] = [#(#limits),*];
    }
}

fn directives(ptx: &Ptx) -> TokenStream {
    let rows: Vec<_> = ptx
        .directives
        .iter()
        .map(|d| {
            let (needs, sm) = (pair(&d.ptx), d.sm);
            let on = |head: &str| d.on.split_whitespace().any(|word| word == head);
            let [entry, function, inside, outside] = ["entry", "func", "pragma", "module"].map(on);
            let gone = match &d.gone {
                Some((deprecated, gone)) => {
                    let (deprecated, gone) = (pair(deprecated), pair(gone));
                    quote!(Some([#deprecated, #gone]))
                }
                None => quote!(None),
            };
            let info = quote! {
                DirectiveInfo {
                    needs: Needs { ptx: #needs, sm: #sm }, entry: #entry, function: #function,
                    pragma: #inside, module: #outside, gone: #gone,
                }
            };
            (d.name.clone(), info.to_string())
        })
        .collect();
    let map = phf_map("DIRECTIVES", "What a directive needs, by its name.", quote!(DirectiveInfo), &rows);
    let versions = ptx.versions.iter().map(|v| pair(&v.version));
    let count = ptx.versions.len();
    let vectors = ptx.vectors.iter().map(|v| {
        let (bits, spaces, needs, sm) = (v.row.bits, v.spaces, pair(&v.row.ptx), v.row.sm);
        quote! { VectorInfo { bits: #bits, spaces: #spaces, needs: Needs { ptx: #needs, sm: #sm } } }
    });
    let widths = ptx.vectors.len();
    quote! {
        #map
        /// Vector widths of loads and stores, narrowest first.
        pub static VECTORS: [VectorInfo; #widths] = [#(#vectors),*];
        /// The versions of PTX, lowest first.
        pub static VERSIONS: [(u32, u32); #count] = [#(#versions),*];
    }
}

/// The fields of references and the names of their values.
fn fields(model: &Model) -> TokenStream {
    let rows = model.ptx.fields.iter().map(|f| {
        let (name, byte, of) = (&f.field, f.byte, f.of.split_whitespace().map(ident));
        let record = match model.elf.attributes.iter().find(|a| a.name == f.record) {
            Some(attribute) => {
                let value = format_ident!("{}", camel(&attribute.value));
                quote!(Some(AttributeValue::#value))
            }
            None => quote!(None),
        };
        quote! { FieldInfo { name: #name, of: &[#(ScalarType::#of),*], record: #record, byte: #byte } }
    });
    let values = model.ptx.field_values.iter().map(|v| {
        let (name, value, setting) = (&v.name, v.value, v.setting);
        quote! { FieldValue { name: #name, value: #value, setting: #setting } }
    });
    let (count, named) = (model.ptx.fields.len(), model.ptx.field_values.len());
    quote! {
        /// Fields of the initialisers of references.
        pub static FIELDS: [FieldInfo; #count] = [#(#rows),*];
        /// Names of their values.
        pub static FIELD_VALUES: [FieldValue; #named] = [#(#values),*];
    }
}

fn maps(ptx: &Ptx) -> TokenStream {
    let known = ptx.operations.iter().flat_map(|o| {
        let names = std::iter::once(o.op.as_str()).chain(o.also.split_whitespace());
        names.map(|name| (name.to_string(), format!("Some(Op::{})", variant(&o.op))))
    });
    let planned = ptx.planned.iter().map(|o| (o.op.clone(), "None".to_string()));
    let ops: Vec<_> = known.chain(planned).collect();
    let ops = phf_map("OP_BY_NAME", "Operations by name; `None` is one without forms yet.", quote!(Option<Op>), &ops);
    let later = ptx.operations.iter().filter(|o| !o.also_ptx.is_empty());
    let later =
        later.flat_map(|o| o.also.split_whitespace().map(|name| (name.to_string(), pair(&o.also_ptx).to_string())));
    let later: Vec<_> = later.collect();
    let later = phf_map(
        "LATER_NAMES",
        "Other spellings of operations with the PTX version that brought them.",
        quote!((u32, u32)),
        &later,
    );
    let free = free_names(ptx);
    let types: Vec<_> =
        ptx.types.iter().map(|t| (t.name.clone(), format!("ScalarType::{}", variant(&t.name)))).collect();
    let types = phf_map("TYPE_BY_NAME", "Types by name.", quote!(ScalarType), &types);
    let specials: Vec<_> =
        ptx.specials.iter().map(|s| (s.name.clone(), format!("SpecialRegister::{}", variant(&s.name)))).collect();
    let specials = phf_map("SPECIAL_BY_NAME", "Special registers by name.", quote!(SpecialRegister), &specials);
    let mut texts: Vec<(String, String)> = Vec::new();
    for group in &ptx.groups {
        for (i, text) in group.texts.iter().enumerate() {
            let entry = format!("(Group::{}, {i}), ", variant(&group.row.group));
            match texts.iter_mut().find(|t| t.0 == text.text) {
                Some(found) => found.1.push_str(&entry),
                None => texts.push((text.text.clone(), entry)),
            }
        }
    }
    let texts: Vec<_> = texts.into_iter().map(|(text, list)| (text, format!("&[{list}]"))).collect();
    let texts = phf_map(
        "MODIFIER_BY_TEXT",
        "Groups that have a text, and its number in each.",
        quote!(&'static [(Group, u8)]),
        &texts,
    );
    let planned = ptx.planned_forms.iter().map(|(op, row)| {
        let (op, words) =
            (ident(&variant(&ptx.operations[*op].op)), ptx.planned_form_rows[*row].words.split_whitespace());
        quote!((Op::#op, &[#(#words),*]))
    });
    let forms = ptx.planned_forms.len();
    quote! {
        #ops #later #free #types #specials #texts
        /// Suffixes of forms without a row, sorted by operation.
        pub static PLANNED_FORMS: [(Op, &[&str]); #forms] = [#(#planned),*];
    }
}

fn free_names(ptx: &Ptx) -> TokenStream {
    let mut stems: Vec<(String, String)> = Vec::new();
    for free in ptx.free_names() {
        let op = variant(&ptx.operations[free.op].op);
        let entry = format!("FreeName {{ last: {:?}, name: {:?}, op: Op::{op} }}, ", free.last, free.name);
        match stems.iter_mut().find(|(stem, _)| stem == free.stem) {
            Some(found) => found.1.push_str(&entry),
            None => stems.push((free.stem.to_string(), entry)),
        }
    }
    let stems: Vec<_> = stems.into_iter().map(|(stem, list)| (stem, format!("&[{list}]"))).collect();
    let doc = "Names whose last part stands anywhere among the modifiers, by what stands before it.";
    phf_map("FREE_NAMES", doc, quote!(&'static [FreeName]), &stems)
}
