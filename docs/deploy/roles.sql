-- The two roles and the database, once, as PostgreSQL's administrator:
--   psql -v owner=holdpoint_owner -v owner_password=… -v app=holdpoint_app -v app_password=… -v database=holdpoint -f roles.sql
-- Safe to repeat: passwords are set anew, nothing else changes.
\set ON_ERROR_STOP on
SELECT format('CREATE ROLE %I', :'owner') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'owner') \gexec
SELECT format('CREATE ROLE %I', :'app') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'app') \gexec
ALTER ROLE :"owner" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD :'owner_password';
ALTER ROLE :"app" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD :'app_password';
-- A statement that waits for a lock must not hold everybody else up during a migration.
ALTER ROLE :"owner" SET lock_timeout = '10s';
ALTER ROLE :"app" SET idle_in_transaction_session_timeout = '60s';
SELECT format('CREATE DATABASE %I OWNER %I', :'database', :'owner')
  WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database') \gexec
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"database" TO :"app";
