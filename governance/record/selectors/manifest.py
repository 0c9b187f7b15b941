"""Reads from PostgreSQL's catalogue what protects the record: triggers, constraints, functions, rights, roles."""

import json
from typing import Any

from django.db import connection

from governance.record.models import GuardManifest
from governance.record.rules.manifest import Facts, Manifest, definition_settled

# Every statement gives a name and its facts as JSON. Names and texts only, no oids: a restored dump is the same.
# Objects of extensions are left out; their owner installs them.
_OURS = "n.nspname = 'public' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = {oid} AND d.deptype = 'e')"
_RELATION = _OURS.format(oid="c.oid")
# Rights as sorted text. Without any in the catalogue, those that PostgreSQL gives by itself: so that a REVOKE and a
# GRANT of the same rights leave the same text.
_ACL = "(SELECT coalesce(jsonb_agg(a::text ORDER BY a::text COLLATE \"C\"), '[]') FROM unnest({acl}) a)"
_GIVEN = """coalesce(c.relacl,
        acldefault(CASE c.relkind WHEN 'S' THEN 's'::"char" ELSE 'r'::"char" END, c.relowner))"""

TRIGGERS = f"""
SELECT t.tgname || ' on ' || c.relname, jsonb_build_object(
    'definition', pg_get_triggerdef(t.oid), 'enabled', t.tgenabled::text)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT t.tgisinternal AND {_RELATION}
"""  # noqa: S608
# NOT NULL is among the columns: older servers do not list it as a constraint. `enabled` is about the triggers inside
# foreign keys and deferred unique constraints: a superuser can switch them off.
CONSTRAINTS = f"""
SELECT k.conname || ' on ' || c.relname, jsonb_build_object(
    'definition', regexp_replace(pg_get_constraintdef(k.oid), ' NOT VALID$', ''), 'not_valid', NOT k.convalidated,
    'enabled', coalesce((SELECT string_agg(DISTINCT i.tgenabled::text, '' ORDER BY i.tgenabled::text)
        FROM pg_trigger i WHERE i.tgconstraint = k.oid AND i.tgisinternal), 'O'))
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.contype <> 'n' AND k.contype <> 't' AND {_RELATION}
"""  # noqa: S608
FUNCTIONS = f"""
SELECT p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', jsonb_build_object(
    'body', encode(sha256(convert_to(coalesce(p.prosrc, '') || coalesce(pg_get_function_sqlbody(p.oid), ''), 'UTF8')),
        'hex'),
    'language', l.lanname, 'definer', p.prosecdef, 'volatility', p.provolatile::text,
    'settings', to_jsonb(p.proconfig), 'owner', pg_get_userbyid(p.proowner),
    'grants', {_ACL.format(acl="coalesce(p.proacl, acldefault('f', p.proowner))")})
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
WHERE {_OURS.format(oid="p.oid")}
"""  # noqa: S608
TABLES = f"""
SELECT c.relname, jsonb_build_object(
    'kind', c.relkind::text, 'owner', pg_get_userbyid(c.relowner), 'persistence', c.relpersistence::text,
    'row_security', jsonb_build_array(c.relrowsecurity, c.relforcerowsecurity),
    'grants', {_ACL.format(acl=_GIVEN)},
    'columns', (SELECT coalesce(jsonb_object_agg(a.attname, a.attacl::text[]), '{{}}') FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attacl IS NOT NULL))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND {_RELATION}
"""  # noqa: S608
COLUMNS = f"""
SELECT c.relname || '.' || a.attname, jsonb_build_object(
    'type', format_type(a.atttypid, a.atttypmod), 'not_null', a.attnotnull, 'identity', a.attidentity::text,
    'generated', a.attgenerated::text, 'default', pg_get_expr(f.adbin, f.adrelid))
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p') AND {_RELATION}
"""  # noqa: S608
INDEXES = f"""
SELECT c.relname, jsonb_build_object('definition', pg_get_indexdef(i.indexrelid), 'usable',
    i.indisvalid AND i.indisready AND i.indislive)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE i.indisunique AND {_RELATION}
"""  # noqa: S608
# Rules rewrite statements: one could make every INSERT into a table do nothing. Views are rules too.
RULES = f"""
SELECT r.rulename || ' on ' || c.relname, jsonb_build_object(
    'definition', pg_get_ruledef(r.oid), 'enabled', r.ev_enabled::text)
FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE {_RELATION}
"""  # noqa: S608
POLICIES = """
SELECT policyname || ' on ' || tablename, jsonb_build_object('definition', to_jsonb(p))
FROM pg_policies p WHERE schemaname = 'public'
"""
EVENT_TRIGGERS = """
SELECT evtname, jsonb_build_object('definition', evtevent || ' ' || evtfoid::regproc::text, 'enabled', evtenabled::text,
    'owner', pg_get_userbyid(evtowner)) FROM pg_event_trigger
"""
SCHEMA = f"""
SELECT n.nspname, jsonb_build_object('owner', pg_get_userbyid(n.nspowner),
    'grants', {_ACL.format(acl="coalesce(n.nspacl, acldefault('n', n.nspowner))")})
FROM pg_namespace n WHERE n.nspname = 'public'
"""  # noqa: S608
# Roles that own something in the schema or have rights on a table. Other roles of the server are not ours.
_ROLES = """
WITH ours AS (
    SELECT relowner AS oid FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION SELECT proowner FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION SELECT a.grantee FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = 'public'::regnamespace
)
"""
ROLES = f"""
{_ROLES}
SELECT r.rolname, jsonb_build_object('superuser', r.rolsuper, 'bypass_row_security', r.rolbypassrls,
    'create_roles', r.rolcreaterole, 'replication', r.rolreplication, 'login', r.rolcanlogin,
    'member_of', (SELECT coalesce(jsonb_agg(g.rolname ORDER BY g.rolname), '[]') FROM pg_auth_members m
        JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid),
    'members', (SELECT coalesce(jsonb_agg(g.rolname ORDER BY g.rolname), '[]') FROM pg_auth_members m
        JOIN pg_roles g ON g.oid = m.member WHERE m.roleid = r.oid))
FROM pg_roles r WHERE r.oid IN (SELECT oid FROM ours)
"""  # noqa: S608
# `ALTER ROLE ... SET`, `ALTER DATABASE ... SET`, and the one setting of the server that switches plain triggers off.
SETTINGS = f"""
{_ROLES}
SELECT coalesce('role ' || pg_get_userbyid(nullif(s.setrole, 0)), 'every role') ||
    CASE WHEN s.setdatabase = 0 THEN '' ELSE ' in this database' END,
    jsonb_build_object('value', to_jsonb(s.setconfig))
FROM pg_db_role_setting s
WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
    AND (s.setrole = 0 OR s.setrole IN (SELECT oid FROM ours))
UNION ALL
SELECT name, jsonb_build_object('value', reset_val) FROM pg_settings WHERE name = 'session_replication_role'
"""  # noqa: S608
SOURCES = {
    "trigger": TRIGGERS,
    "constraint": CONSTRAINTS,
    "function": FUNCTIONS,
    "table": TABLES,
    "column": COLUMNS,
    "unique index": INDEXES,
    "rule": RULES,
    "policy": POLICIES,
    "event trigger": EVENT_TRIGGERS,
    "schema": SCHEMA,
    "role": ROLES,
    "setting": SETTINGS,
}


def manifest_live() -> Manifest:
    """The guards as they are now."""
    with connection.cursor() as cursor:
        return {kind: _rows(cursor, statement) for kind, statement in SOURCES.items()}


def _rows(cursor: Any, statement: str) -> dict[str, Facts]:
    cursor.execute(statement)
    return {name: _decoded(facts) for name, facts in cursor.fetchall()}


def _decoded(facts: Any) -> Facts:
    # Depending on the connection, JSON comes as text or decoded.
    found: dict[str, Any] = json.loads(facts) if isinstance(facts, str) else facts
    if isinstance(found.get("definition"), str):
        found["definition"] = definition_settled(found["definition"])
    return found


def guard_manifests() -> list[GuardManifest]:
    """The adopted manifests, newest first."""
    return list(GuardManifest.objects.order_by("-id"))


def manifest_possible() -> bool:
    """Whether the table of manifests exists."""
    return GuardManifest._meta.db_table in connection.introspection.table_names()
