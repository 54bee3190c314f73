#!/bin/sh
# Runs once, when the volume of PostgreSQL is new: a user and a database for Airflow's metadata, and for the catalog.
set -eu

create() {
    psql -v ON_ERROR_STOP=1 -v name="$1" -v password="$2" --username "$POSTGRES_USER" --dbname postgres <<-'SQL'
	CREATE USER :"name" PASSWORD :'password';
	CREATE DATABASE :"name" OWNER :"name";
	SQL
}

create airflow "$AIRFLOW_DATABASE_PASSWORD"
create viewdf "$VIEWDF_DATABASE_PASSWORD"
