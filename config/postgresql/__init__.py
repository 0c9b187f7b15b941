"""Django's PostgreSQL backend, with connections that notice a server that has stopped answering."""
